"""fit, encode, denoise, traverse: the files hold the same results as the estimator in Python."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from command_line import drkm
from drkm import ConstrDRKM, load
from drkm.inputs.preparation import Preparation
from drkm.kernels import RBF, Linear
from drkm.loading import load_prepared
from drkm.strange_data import StrangeDataWarning

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with digits as an array, as image files and as a table with names, and a model of each."""
    folder = tmp_path_factory.mktemp("models")
    images = load_digits().images[:70]
    np.save(folder / "digits.npy", images)
    (folder / "pictures").mkdir()
    for number, image in enumerate(images):
        Image.fromarray((image * 15).astype(np.uint8)).save(folder / "pictures" / f"{number:02d}.png")
    iris = load_iris()
    with open(folder / "iris.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["plant", "sl", "sw", "pl", "pw", "species"])
        for number, (row, kind) in enumerate(zip(iris.data, iris.target, strict=True)):
            writer.writerow([f"p{number}", *row, iris.target_names[kind]])
    made = [
        drkm("fit", folder / "digits.npy", "-o", folder / "digits.model", "-c", "4,2"),
        drkm("fit", folder / "pictures", "-o", folder / "pictures.model", "-c", "4,2"),
        drkm(
            *("fit", folder / "iris.csv", "-o", folder / "iris.model", "-c", "3", "--id", "plant"),
            *("--drop", "species", "--scale", "standard"),
        ),
    ]
    assert [one.code for one in made] == [0, 0, 0], made
    return folder


def picture(path):
    with Image.open(path) as image:
        return np.asarray(image, dtype=float)


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_fields_of_json_output_are_those_of_the_page(place, tmp_path):
    model, table, read = place / "iris.model", place / "iris.csv", ("--id", "plant", "--drop", "species")
    page = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (`.*?`) \| (.*) \|$", page, re.MULTILINE))
    commands = {
        "`fit`": ("fit", table, "-o", tmp_path / "m", "-c", "2", *read),
        "`encode`": ("encode", model, table, "-o", tmp_path / "c.csv", "--quality", "--anomaly"),
        "`denoise`": ("denoise", model, table, "-o", tmp_path / "d.csv"),
        "`select`, `denoise --auto`": ("denoise", table, "-o", tmp_path / "a.csv", "--auto", *read),
        "`traverse`": ("traverse", model, "-o", tmp_path / "t.csv"),
        "`explore`": ("explore", model, "-o", tmp_path / "p.html"),
        "`fill`": ("fill", table, "-o", tmp_path / "f.csv", *read),
    }
    for row, words in commands.items():
        quick = ("--noise", "0.3", "--max-seconds", "0.001") if "--auto" in words else ()
        done = drkm(*words, *quick, "--json")
        assert done.code == 0, done
        missing = set(json.loads(done.out)) - set(re.findall(r"`(\w+)`", rows[row]))
        assert not missing, (row, missing)


@pytest.mark.parametrize("white", [1.0, 5000.0])
def test_floating_point_pictures_are_neither_divided_nor_written_black(white, tmp_path):
    values = (load_digits().images[:30] / 16 * white).astype(np.float32)
    (tmp_path / "in").mkdir()
    for number, image in enumerate(values):
        Image.fromarray(image).save(tmp_path / "in" / f"{number:02d}.tif")
    done = drkm("fit", tmp_path / "in", "-o", tmp_path / "m", "-c", "25")
    assert done.code == 0, done
    assert done.out.endswith("with how the data were read: images of 8x8\n")
    done = drkm("denoise", tmp_path / "m", tmp_path / "in", "-o", tmp_path / "out")
    assert done.code == 0, done
    found = np.stack([picture(tmp_path / "out" / f"{number:02d}.png") for number in range(30)])
    assert np.corrcoef(found.ravel(), values.ravel())[0, 1] > 0.98
    assert found.max() > 200
    assert drkm("encode", tmp_path / "m", tmp_path / "in" / "03.tif", "-o", tmp_path / "c.csv").code == 0


def test_a_change_of_prepared_data_says_its_units(place, tmp_path):
    done = drkm("denoise", place / "iris.model", place / "iris.csv", "-o", tmp_path / "clean.csv")
    assert re.search(r"mean squared change [\d.e-]+ in the units of the file, written to", done.out), done
    done = drkm("denoise", place / "pictures.model", place / "pictures", "-o", tmp_path / "clean")
    assert re.search(r"mean squared change [\d.e-]+ in grey values from 0 to 255, written to", done.out), done
    done = drkm("denoise", place / "digits.model", place / "digits.npy", "-o", tmp_path / "clean.npy")
    assert re.search(r"mean squared change [\d.e-]+, written to", done.out), done


def test_fit_prints_the_summary_and_where_the_model_is(place):
    done = drkm("fit", place / "digits.npy", "-o", place / "again", "-c", "4,2", "--no-progress")
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[0] == "ConstrDRKM: 70 samples, 64 features, 6 components in 2 layers"
    assert lines[-1] == f"written to {place / 'again'} with how the data were read: images of 8x8"


@pytest.mark.filterwarnings("ignore:ConstrDRKM. the tolerance is reached:sklearn.exceptions.ConvergenceWarning")
def test_options_reach_the_estimator(place):
    words = (
        "-c",
        "3,2",
        "--kernel",
        "rbf,linear",
        "--sigma2",
        "900,auto",
        "--eta",
        "1,2",
        "--center",
        "--axes",
        "none",
    )
    more = (
        "--init",
        "random",
        "--n-init",
        "2",
        "--seed",
        "7",
        "--solver",
        "lbfgs",
        "--tol",
        "1e-2",
        "--dtype",
        "float32",
    )
    done = drkm("fit", place / "digits.npy", "-o", place / "options", *words, *more)
    assert done.code == 0, done.err
    found = load(place / "options")
    X = load_digits().images[:70].reshape(70, -1)
    expected = ConstrDRKM(
        (3, 2),
        kernel=[RBF(900.0), Linear()],
        eta=[1.0, 2.0],
        center=True,
        axes=None,
        init="random",
        n_init=2,
        random_state=7,
        solver="lbfgs",
        tol=1e-2,
        dtype="float32",
    ).fit(X)
    np.testing.assert_array_equal(found.codes_, expected.codes_)


def test_json_of_fit_has_the_certificate(place):
    done = drkm("fit", place / "digits.npy", "-o", place / "json", "-c", "4,2", "--json")
    facts = json.loads(done.out)
    model = load(place / "json")
    assert set(facts) == {
        *("model", "samples", "features", "components", "kernels", "eta", "objective", "feasibility", "stationarity"),
        *("converged", "iterations", "seconds", "eigenvalues"),
    }
    assert facts["objective"] == model.objective_
    assert facts["converged"] is True
    assert facts["eigenvalues"] == [values.tolist() for values in model.eigenvalues_]


def test_a_fit_that_does_not_converge_is_written_with_a_warning(place):
    done = drkm("fit", place / "digits.npy", "-o", place / "short", "-c", "4,2", "--max-iter", "1")
    assert done.code == 0
    assert done.err.startswith("drkm: warning: did not converge (max_iter after 1 iteration")
    assert done.err.count("\n") == 1
    assert not load(place / "short").converged_


def test_a_fit_out_of_time_goes_on_from_its_checkpoint(place):
    words = ["fit", place / "digits.npy", "-o", place / "late", "-c", "4,2", "--checkpoint", place / "part", "--force"]
    done = drkm(*words, "--max-seconds", 1e-9)
    assert done.code == 0
    assert f"with a larger --max-seconds and --force resumes from {place / 'part'}" in done.err
    assert not load(place / "late").converged_
    done = drkm(*words, "--max-seconds", 100)
    assert (done.code, done.err) == (0, "")
    assert load(place / "late").converged_
    assert not (place / "part").exists()


def test_sample_trains_on_that_many_rows(place):
    done = drkm("fit", place / "digits.npy", "-o", place / "fewer", "-c", "4,2", "--sample", "40", "--json")
    assert json.loads(done.out)["samples"] == 40


def test_codes_of_a_table_are_found_by_the_names_of_its_columns(place):
    rows = rows_of(place / "iris.csv")
    with open(place / "turned.csv", "w", newline="") as file:
        csv.writer(file).writerows([row[::-1] for row in rows])
    # Fit was told which column has the row names; repeating the option changes nothing.
    for name, more in (("iris.csv", ()), ("turned.csv", ("--id", "plant"))):
        done = drkm("encode", place / "iris.model", place / name, "-o", place / f"codes_{name}", *more)
        assert done.code == 0, done.err
    assert (place / "codes_iris.csv").read_text() == (place / "codes_turned.csv").read_text()
    header, *codes = rows_of(place / "codes_iris.csv")
    assert header == ["plant", "layer1_0", "layer1_1", "layer1_2"]
    assert [row[0] for row in codes] == [row[0] for row in rows[1:]]
    X = load_iris().data
    expected = ConstrDRKM((3,)).fit((X - X.mean(axis=0)) / X.std(axis=0))
    np.testing.assert_allclose(np.array([row[1:] for row in codes], dtype=float), expected.codes_, atol=1e-8)


def test_a_table_without_names_of_rows_is_encoded_without_them(place):
    rows = rows_of(place / "iris.csv")
    with open(place / "nameless.csv", "w", newline="") as file:
        csv.writer(file).writerows([row[1:] for row in rows])
    done = drkm("encode", place / "iris.model", place / "nameless.csv", "-o", place / "codes_nameless.csv")
    assert done.code == 0, done.err
    assert rows_of(place / "codes_nameless.csv")[0] == ["layer1_0", "layer1_1", "layer1_2"]


def test_codes_of_pictures_carry_their_names_and_quality_adds_three_columns(place):
    done = drkm("encode", place / "pictures.model", place / "pictures", "-o", place / "p.csv", "--quality")
    assert "of 70 codes ambiguous" in done.out
    header, *rows = rows_of(place / "p.csv")
    assert header[0] == "file"
    assert header[-3:] == ["residual", "ambiguous", "strange"]
    assert [row[0] for row in rows] == [f"{number:02d}.png" for number in range(70)]
    drkm("encode", place / "pictures.model", place / "pictures", "-o", place / "p.npz", "--quality")
    with np.load(place / "p.npz") as archive:
        assert set(archive.files) == {"files", "codes", "residual", "ambiguous", "strange"}
        np.testing.assert_allclose(archive["codes"], load_prepared(place / "pictures.model")[0].codes_, atol=1e-6)


def test_denoised_arrays_keep_shape_and_units(place):
    done = drkm(
        "denoise", place / "digits.model", place / "digits.npy", "-o", place / "d.npy", "--components", "layer 1"
    )
    assert done.code == 0, done.err
    images = np.load(place / "digits.npy")
    expected = load(place / "digits.model").denoise(images.reshape(70, -1), components="layer 1")
    np.testing.assert_array_equal(np.load(place / "d.npy"), expected.reshape(images.shape))


def test_denoised_pictures_are_pictures_again(place):
    done = drkm("denoise", place / "pictures.model", place / "pictures", "-o", place / "clean", "--json")
    assert json.loads(done.out)["samples"] == 70
    assert sorted(entry.name for entry in (place / "clean").iterdir())[:2] == ["00.png", "01.png"]
    before = picture(place / "pictures" / "07.png")
    expected = load_prepared(place / "pictures.model")[0].denoise(before.reshape(1, -1) / 255).reshape(8, 8) * 255
    found = picture(place / "clean" / "07.png")
    assert np.abs(found - np.clip(expected, 0, 255)).max() <= 0.5


def test_denoised_tables_keep_their_names_and_units(place):
    done = drkm(
        *("denoise", place / "iris.model", place / "iris.csv", "-o", place / "d.csv", "--id", "plant"),
        *("--components", "1:0,1:1,1:2"),
    )
    assert done.code == 0, done.err
    header, *rows = rows_of(place / "d.csv")
    assert header == ["plant", "sl", "sw", "pl", "pw"]
    found = np.array([row[1:] for row in rows], dtype=float)
    X = load_iris().data
    model, _ = load_prepared(place / "iris.model")
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(found, model.denoise(scaled) * X.std(axis=0) + X.mean(axis=0), atol=1e-9)


def test_traversals_are_those_of_the_estimator(place):
    words = ("--component", "1:1", "--component", "2:0", "--values", "-0.1,0.2", "--base", "3")
    done = drkm("traverse", place / "digits.model", "-o", place / "t.csv", *words)
    assert done.code == 0, done.err
    header, *rows = rows_of(place / "t.csv")
    assert header[:4] == ["layer", "index", "value", "x0"]
    assert [row[:3] for row in rows] == [["1", "1", "-0.1"], ["1", "1", "0.2"], ["2", "0", "-0.1"], ["2", "0", "0.2"]]
    model = load(place / "digits.model")
    expected = np.concatenate([model.traverse(1, 1, [-0.1, 0.2], 3), model.traverse(2, 0, [-0.1, 0.2], 3)])
    np.testing.assert_array_equal(np.array([row[3:] for row in rows], dtype=float), expected)


def test_a_base_may_be_a_picture_and_steps_lie_around_the_mean(place):
    words = ("--component", "1:2", "--steps", "3", "--span", "1", "--base", place / "pictures" / "05.png", "--json")
    done = drkm("traverse", place / "pictures.model", "-o", place / "t.npy", *words)
    codes = load_prepared(place / "pictures.model")[0].codes_[:, 2]
    (line,) = json.loads(done.out)["components"]
    expected = [codes.mean() - codes.std(), codes.mean(), codes.mean() + codes.std()]
    np.testing.assert_allclose(line["values"], expected, atol=1e-12)
    assert np.load(place / "t.npy").shape == (3, 8, 8)


def test_a_strip_has_one_line_a_component(place):
    pytest.importorskip("matplotlib")
    assert drkm("traverse", place / "pictures.model", "-o", place / "four.png").code == 0
    assert drkm("traverse", place / "pictures.model", "-o", place / "one.png", "--component", "1:0").code == 0
    four, one = (picture(place / name).shape for name in ("four.png", "one.png"))
    assert four[1] == one[1]
    assert four[0] > 3 * one[0]


def test_flat_rows_become_pictures_when_told_their_shape(place):
    np.save(place / "flat.npy", np.load(place / "digits.npy").reshape(70, 64))
    drkm("fit", place / "flat.npy", "-o", place / "flat.model", "-c", "4")
    done = drkm("denoise", place / "flat.model", place / "flat.npy", "-o", place / "flat", "--shape", "8x8")
    assert done.code == 0, done.err
    # White is the largest training value, 16.
    expected = load(place / "flat.model").denoise(np.load(place / "flat.npy"))[9].reshape(8, 8) / 16 * 255
    found = picture(place / "flat" / "09.png")
    assert np.abs(found - np.clip(expected, 0, 255)).max() <= 0.5


def test_pictures_of_any_size_and_colour_suit_a_model_that_was_fitted_so(place):
    (place / "odd").mkdir()
    Image.new("RGB", (20, 10), (10, 200, 30)).save(place / "odd" / "a.png")
    Image.new("L", (6, 6), 99).save(place / "odd" / "b.jpg")
    words = ("-c", "2", "--resize", "8", "--grey")
    assert drkm("fit", place / "pictures", "-o", place / "resized.model", *words).code == 0
    done = drkm("encode", place / "resized.model", place / "odd", "-o", place / "odd.csv")
    assert done.code == 0, done.err
    assert [row[0] for row in rows_of(place / "odd.csv")] == ["file", "a.png", "b.jpg"]


def test_a_model_made_in_python_with_a_frame_takes_tables_by_name(place):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(place / "iris.csv")[["pl", "sl"]]
    model = ConstrDRKM(2).fit(frame)
    model.save(place / "python.model")
    done = drkm("encode", place / "python.model", place / "iris.csv", "-o", place / "python.npy")
    assert (done.code, done.err) == (0, "")
    np.testing.assert_array_equal(np.load(place / "python.npy"), model.transform(frame).to_numpy())
    assert load_prepared(place / "python.model")[1] == Preparation()


def test_force_replaces_a_file(place):
    target = place / "forced.npy"
    target.write_bytes(b"old")
    assert drkm("encode", place / "digits.model", place / "digits.npy", "-o", target).code == 2
    assert target.read_bytes() == b"old"
    assert drkm("encode", place / "digits.model", place / "digits.npy", "-o", target, "--force").code == 0
    assert np.load(target).shape == (70, 6)


def test_load_says_that_the_data_of_a_model_were_prepared(place):
    prepared = r"iris\.model holds a model of prepared data \(columns standardised\)"
    with pytest.warns(StrangeDataWarning, match=prepared) as told:
        model = load(place / "iris.model")
    assert told[0].filename == __file__
    again, preparation = load_prepared(place / "iris.model")
    rows = load_iris().data
    assert model.encode(rows * 100).strange.all()
    np.testing.assert_allclose(again.transform(preparation.apply(rows)), again.codes_, atol=1e-6)


def test_encode_warns_of_codes_that_are_not_determined(place):
    words = ("-c", "6,3", "--init", "random", "--seed", "0", "--max-iter", "2")
    assert drkm("fit", place / "digits.npy", "-o", place / "early", *words).code == 0
    np.save(place / "later.npy", load_digits().images[70:140])
    done = drkm("encode", place / "early", place / "later.npy", "-o", place / "early.npy", "--json")
    lost = json.loads(done.out)["unbounded"]
    assert lost > 0
    assert f"drkm: warning: codes of {lost} of 70 points are not determined" in done.err


def test_encode_names_rows_that_are_unlike_all_samples(place):
    np.save(place / "bright.npy", 1000 * np.load(place / "digits.npy"))
    done = drkm("encode", place / "digits.model", place / "bright.npy", "-o", place / "bright.csv", "--quality")
    assert done.code == 0
    assert "drkm: warning: 70 of 70 rows are unlike all training samples" in done.err
    assert "70 of 70 rows strange" in done.out
    header, *rows = rows_of(place / "bright.csv")
    assert {row[header.index("strange")] for row in rows} == {"1"}
    done = drkm("denoise", place / "digits.model", place / "bright.npy", "-o", place / "bright_clean.npy", "--json")
    assert "70 of 70 rows are unlike all training samples" in done.err
