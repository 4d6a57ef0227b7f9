"""Data files: reading and writing of tables, arrays and folders of images; writes are atomic."""

from drkm.files._guarded import check_room, reading
from drkm.files._images import Pictures, write_images
from drkm.files._labels import TABLES, read_labels
from drkm.files._npy import NpzFile
from drkm.files._read import SUFFIXES, check_options, check_source, is_pictures, read_table
from drkm.files._table import ANOMALY, QUALITY, Columns, Refused, Table, how_to_fill, listed
from drkm.files._whole import called, write_whole, write_whole_folder
from drkm.files._write import SUFFIXES as WRITABLE
from drkm.files._write import check_folder, check_target, names_folder, write_table

__all__ = [
    "ANOMALY",
    "QUALITY",
    "SUFFIXES",
    "TABLES",
    "WRITABLE",
    "Columns",
    "NpzFile",
    "Pictures",
    "Refused",
    "Table",
    "called",
    "check_folder",
    "check_options",
    "check_room",
    "check_source",
    "check_target",
    "how_to_fill",
    "is_pictures",
    "listed",
    "names_folder",
    "read_labels",
    "read_table",
    "reading",
    "write_images",
    "write_table",
    "write_whole",
    "write_whole_folder",
]
