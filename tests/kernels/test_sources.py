"""The kernels' sources are found from a wheel, from an editable install and from a bare checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hyphae_gpu.backends.cuda import backend, wave
from hyphae_gpu.backends.cuda.sources import entries, kernel_folder, kernel_source, kernel_stems
from hyphae_gpu.backends.cuda.wave import Counter
from hyphae_gpu.wave_state import WaveState

CHECKOUT = Path(__file__).parents[2]
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
#: Without site-packages, where this very project may be installed.
ASK = """
import site, sys
site.addsitedir(sys.argv[1])
from hyphae_gpu.backends.cuda.sources import kernel_folder, kernel_source, kernel_stems
print(kernel_folder())
print(len([kernel_source(stem) for stem in kernel_stems()]))
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a checkout has, its link as a link."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("hyphae_gpu", "kernels"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(CHECKOUT / name, copy / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, copy)
    return copy


def installed(checkout: Path, how: str, folder: Path) -> Path:
    """Build and unpack a wheel, as an installer does."""
    site, out = folder / "site", folder / "out"
    out.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", BUILD, how, str(out)],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    zipfile.ZipFile(next(out.glob("*.whl"))).extractall(site)
    return site


def asked(site: Path, cwd: Path) -> tuple[Path, int]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ASK, str(site)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    folder, count = done.stdout.splitlines()
    return Path(folder), int(count)


def test_a_wheel_brings_its_own_copy(checkout, tmp_path):
    site = installed(checkout, "build_wheel", tmp_path)
    folder, count = asked(site, tmp_path)
    assert folder == site / "hyphae_gpu" / "kernels"
    assert count == len(kernel_stems())
    assert not folder.is_symlink()


def test_an_editable_install_reads_the_checkout(checkout, tmp_path):
    site = installed(checkout, "build_editable", tmp_path)
    folder, count = asked(site, tmp_path)
    assert folder.resolve() == (checkout / "kernels").resolve()
    assert count == len(kernel_stems())


def test_a_checkout_that_lost_its_link_still_has_them(checkout, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(checkout, bare, symlinks=True)
    (bare / "hyphae_gpu" / "kernels").unlink()
    assert asked(bare, tmp_path) == (bare / "kernels", len(kernel_stems()))


def test_none_at_all_is_an_error_that_names_both_places(checkout, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(checkout, bare, symlinks=True)
    (bare / "hyphae_gpu" / "kernels").unlink()
    shutil.rmtree(bare / "kernels")
    with pytest.raises(
        AssertionError, match=r"FileNotFoundError: no kernels at .*hyphae_gpu/kernels nor at .*/kernels"
    ):
        asked(bare, tmp_path)


def test_here_they_are_the_checkouts():
    assert kernel_folder().resolve() == CHECKOUT / "kernels"


def test_a_source_holds_what_it_includes_once():
    source = kernel_source("gate")
    assert "#include" not in source
    assert source.count("typedef long long int64;") == 1


def test_a_source_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError, match=r"no kernel source nothing\.cu"):
        kernel_source("nothing")


def test_kernels_have_names_of_their_own():
    names = [name for stem in kernel_stems() for name in entries(kernel_source(stem))]
    assert len(names) == len(set(names))
    assert {"scores", "open_counts", "losses", "expand", "gate", "relax", "settle"} <= set(names)


def test_host_and_kernels_number_the_same_things_alike():
    source = kernel_source("scores") + kernel_source("expand")
    body = re.search(r"enum Counter \{(.*?)\};", source, re.DOTALL)[1]
    apart = int(re.search(r"COUNTERS_APART = (\d+);", source)[1])
    places = {name: int(place) * apart for name, place in re.findall(r"([A-Z_]+) = (\d+) \* COUNTERS_APART", body)}
    assert places == {counter.name: counter.value for counter in Counter}
    rooms = re.search(r"enum Room \{(.*?)\};", source)[1]
    assert [int(bit) for bit in re.findall(r"= (\d)", rooms)] == [wave._SLOT_ROOM, wave._PENDING_ROOM, wave._OFFER_ROOM]
    assert int(re.search(r"SLICE = (\d+);", source)[1]) == backend._SLICE
    marks = re.search(r"CLOSED = (-\d), OPEN = (-\d)", source)
    assert (int(marks[1]), int(marks[2])) == (WaveState.CLOSED, WaveState.OPEN)
