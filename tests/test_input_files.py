"""Folders to write to are made, or refused before any work is lost."""

import pytest

from radreason import InputError
from radreason.cli import main
from radreason.input_files import make_folder


def test_a_folder_is_made_with_those_above_it_and_may_be_there(tmp_path):
    assert make_folder(tmp_path / "a" / "b").is_dir()
    assert make_folder(tmp_path / "a" / "b").is_dir()


def test_a_file_in_its_place_is_bad_input(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="cannot be made"):
            make_folder(path)


def test_no_command_makes_folders_in_another_way():
    """A bare mkdir in a command ends in the system's words and the wrong exit code."""
    from pathlib import Path

    folder = Path(main.__code__.co_filename).parent
    assert [path.name for path in folder.glob("*.py") if ".mkdir(" in path.read_text(encoding="utf-8")] == []
