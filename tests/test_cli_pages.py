"""Help, version, completion, and the commands that only print."""

import json
import re
import sys

import numpy as np
import pytest

from command_line import drkm, refused
from drkm import __version__, metrics
from drkm.cli.app import app
from drkm.files import write_table
from versions import skip_before

COMMANDS = [command.callback.__name__ for command in app.registered_commands]


def test_the_version_is_printed():
    assert drkm("--version").out == f"drkm {__version__}\n"


def test_without_a_word_the_help_is_shown_with_every_command():
    shown = drkm()
    assert shown.code == 0
    for name in [*COMMANDS, "datasets"]:
        assert re.search(rf"^  {name} ", shown.out, re.MULTILINE)
    assert drkm("datasets").err.startswith("Usage: drkm datasets")


def test_a_mistyped_command_is_answered_by_the_nearest_one():
    said = refused("fti", "X.npy")
    assert "'fit'" in said
    assert said.endswith("? See drkm --help\n")


@pytest.mark.parametrize("name", ["fit", "encode", "denoise", "traverse", "explore", "evaluate"])
def test_help_has_examples_whose_options_exist(name):
    shown = drkm(name, "--help").out
    described, examples = shown.split("Examples:")
    assert examples.count(f"drkm {name} ") >= 2
    for option in re.findall(r"(?<=\s)--?[a-z][a-z0-9-]*", examples):
        assert re.search(rf"(?<=[\s,]){option}\b", described), option


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_in_small_letters(name):
    # Some versions of typer mistake the placeholder of a value for the name of its option.
    options = re.findall(r"^  (?:-\w, )?(--\S+)", drkm(name, "--help").out, re.MULTILINE)
    assert "--help" in options
    assert options == [option.lower() for option in options]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_sentence_of_every_help_fits_on_its_line(name):
    assert re.search(rf"^  {name} .*[^.]\.$", drkm("--help").out, re.MULTILINE)


@pytest.mark.skipif(**skip_before("typer", "0.28"))
@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["fit"], "DATA"),
        (["merge"], "STORE OTHER..."),
        (["reproduce"], "NAME..."),
        (["demo"], "[DATA]"),
        (["explore"], "MODEL [DATA]"),
        (["datasets", "download"], "NAME"),
        (["datasets", "verify"], "[NAME]"),
    ],
)
def test_the_usage_names_arguments_as_the_page_below_does(words, arguments):
    assert drkm(*words, "--help").out.splitlines()[0] == f"Usage: drkm {' '.join(words)} [OPTIONS] {arguments}"


def test_without_typer_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    assert refused("--version") == "drkm: the command line needs the extra 'cli': pip install 'drkm[cli]'\n"


def test_ctrl_c_before_the_command_begins_is_one_word(monkeypatch):
    class Interrupting:
        def find_spec(self, name, path, target=None):
            if name == "drkm.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "drkm.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    done = drkm("--version")
    assert (done.code, done.out, done.err) == (130, "", "drkm: interrupted\n")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("drkm enc", ["encode"]),
        ("drkm fit --che", ["--checkpoint"]),
        ("drkm fit --solver tr", ["trust-region"]),
        ("drkm fit --kernel rbf,lin", ["rbf,linear"]),
    ],
)
def test_shells_complete_commands_options_and_names(words, found, monkeypatch):
    monkeypatch.setenv("_DRKM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert drkm().out.split() == found


def test_names_in_the_help_of_fit_are_those_of_the_library():
    from drkm import kernels, solvers
    from drkm.cli import _estimator
    from drkm.problem import axes
    from drkm.training import parameters, starts

    assert set(_estimator.KERNELS) == set(kernels.NAMES)
    assert set(_estimator.SOLVERS) == {"auto", *solvers.NAMES}
    shown = drkm("fit", "--help").out
    for name in (*starts.NAMES, *filter(None, axes.NAMES), *parameters.DTYPES):
        assert name in shown


def test_options_of_fit_that_are_not_given_are_those_of_the_estimator():
    from drkm import ConstrDRKM
    from drkm.cli._estimator import ModelOptions, TrainingOptions, estimator

    made = estimator(ModelOptions(), TrainingOptions(), None, progress=False).get_params(deep=False)
    usual = ConstrDRKM().get_params(deep=False)
    # A command without a seed gives the same model every time, and one without a bandwidth takes the kernel's rule.
    differ = {name for name, value in made.items() if value != usual[name]}
    assert differ == {"sigma2", "random_state"}
    assert made["sigma2"] == "auto"


@pytest.fixture
def scored(tmp_path):
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(size, size=200) for size in (3, 4)], axis=1)
    np.save(tmp_path / "factors.npy", factors)
    np.save(tmp_path / "codes.npy", factors @ rng.normal(size=(2, 3)) + 0.1 * rng.normal(size=(200, 3)))
    return tmp_path


def test_evaluate_prints_every_metric_beside_its_chance_level(scored):
    done = drkm("evaluate", scored / "codes.npy", scored / "factors.npy")
    assert (done.code, done.err) == (0, "")
    for word in ("chance", "IRS", "MIG", "SAP", "DCI", "FactorVAE"):
        assert word in done.out


def test_evaluate_gives_some_metrics_as_json_and_knows_the_names_of_rows(scored):
    codes = np.load(scored / "codes.npy")
    write_table(scored / "codes.csv", codes, ["a", "b", "c"], before={"file": [f"{row}.png" for row in range(200)]})
    words = ("--metrics", "mig,irs", "--json", "--id", "file")
    done = drkm("evaluate", scored / "codes.csv", scored / "factors.npy", *words)
    scores = json.loads(done.out)["scores"]
    assert {row["metric"] for row in scores} == {"mig", "irs"}
    expected = float(metrics.mig(codes, np.load(scored / "factors.npy")))
    assert [row["score"] for row in scores if row["metric"] == "mig"] == [pytest.approx(expected)]


def test_evaluate_can_be_told_whether_names_come_first(scored):
    rows = [f"{row}.png,{shape},{size}" for row, (shape, size) in enumerate(np.load(scored / "factors.npy"))]
    (scored / "factors.csv").write_text("\n".join(rows))
    words = ("evaluate", scored / "codes.npy", scored / "factors.csv", "--metrics", "mig", "--id", "0")
    assert "say which with --header or --no-header" in refused(*words)
    told = json.loads(drkm(*words, "--no-header", "--json").out)
    plain = drkm("evaluate", scored / "codes.npy", scored / "factors.npy", "--metrics", "mig", "--json")
    assert told["scores"] == json.loads(plain.out)["scores"]


@pytest.mark.parametrize("option", ["id", "drop"])
def test_evaluate_refuses_a_column_that_no_file_has(option, scored):
    codes, factors = scored / "codes.npy", scored / "factors.npy"
    said = refused("evaluate", codes, factors, f"--{option}", "who")
    assert said == f"drkm: {option}: no column is called 'who', {codes} has no names, {factors} has no names\n"


def test_evaluate_compares_the_names_of_rows(scored):
    codes, factors = scored / "codes.csv", scored / "factors.csv"
    names = [f"{row}.png" for row in range(200)]
    write_table(codes, np.load(scored / "codes.npy"), ["a", "b", "c"], before={"file": names})
    words = ("evaluate", codes, factors, "--id", "file", "--metrics", "mig")
    write_table(factors, np.load(scored / "factors.npy"), ["shape", "size"], before={"file": names})
    assert drkm(*words).code == 0
    write_table(factors, np.load(scored / "factors.npy"), ["shape", "size"], before={"file": names[::-1]})
    said = f"id: row 1 is '0.png' in {codes} and '199.png' in {factors}: bring the rows to one order"
    assert refused(*words) == f"drkm: {said}\n"


@pytest.mark.parametrize("told", [("residual", "ambiguous"), ("residual", "ambiguous", "anomaly"), ("anomaly",)])
def test_evaluate_does_not_take_the_quality_of_codes_for_codes(scored, told):
    codes = np.load(scored / "codes.npy")
    quality = dict.fromkeys(told, np.load(scored / "factors.npy")[:, 0])
    write_table(scored / "codes.csv", codes, ["a", "b", "c"], after=quality)
    found = [
        drkm("evaluate", scored / name, scored / "factors.npy", "--metrics", "mig")
        for name in ("codes.csv", "codes.npy")
    ]
    assert found[0].code == 0
    assert found[0].out == found[1].out


def test_evaluate_shows_the_names_of_factors_and_takes_numbers_if_told(scored):
    write_table(scored / "factors.csv", np.load(scored / "factors.npy") / 10, ["shape", "size"])
    words = ("evaluate", scored / "codes.npy", scored / "factors.csv", "--metrics", "mig,sap")
    told = (
        "evaluate without 'continuous' needs integer labels, shape (column 0) holds 0.2; for numbers pass --continuous"
    )
    assert told in refused(*words)
    done = drkm(*words, "--continuous")
    assert [line.split()[0] for line in done.out.splitlines()[-3:-1]] == ["shape", "size"]


def test_datasets_are_listed_with_their_licence_and_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DRKM_DATA", str(tmp_path))
    (tmp_path / "smallnorb_inst0_left_64.npz").touch()
    done = drkm("datasets", "list")
    assert done.code == 0, done.err
    assert max(map(len, done.out.split("\ndata folder")[0].splitlines())) <= 120
    for word in ("cars3d", "Apache-2.0", str(tmp_path), "in place: no file", "in place: smallnorb_inst0_left_64.npz"):
        assert word in done.out
    done = drkm("datasets", "verify", "cars3d")
    assert done.code == 0
    assert f"data folder: {tmp_path}" in done.out
