"""Files are replaced whole: where a write breaks off, the file that was there stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reluctant._files import replacement, write_text

TORN = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from reluctant import ReLUNetwork
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
ReLUNetwork([np.ones((50, 50))], [np.ones(50)]).save(sys.argv[1])
"""


@pytest.mark.parametrize("suffix", [".npz", ".onnx"])
def test_a_network_that_cannot_be_written_leaves_the_old_file(tmp_path, suffix, patience):
    path = tmp_path / f"copy{suffix}"
    path.write_bytes(b"the copy of yesterday")
    ended = subprocess.run(
        [sys.executable, "-c", TORN, str(path)], capture_output=True, text=True, check=False, timeout=patience
    )
    assert ended.returncode != 0
    assert "File too large" in ended.stderr
    assert path.read_bytes() == b"the copy of yesterday"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_rights_of_new_files_and_an_old_one_its_own(tmp_path):
    plain, path = tmp_path / "plain", tmp_path / "new.json"
    plain.touch()
    write_text(path, "1")
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o600)
    write_text(path, "2")
    assert (path.read_text("utf-8"), path.stat().st_mode & 0o777) == ("2", 0o600)


def test_a_link_keeps_pointing_to_its_file(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch()
    link.symlink_to(file)
    write_text(link, "text")
    assert link.is_symlink()
    assert file.read_text("utf-8") == "text"


def test_a_device_is_written_to_directly():
    with replacement(Path("/dev/null")) as fresh:
        assert fresh == Path("/dev/null")
