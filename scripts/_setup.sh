# Makes .venv for the scripts beside it. Sourced, with the extras to install: . scripts/_setup.sh "cpu,embedded"
# Leaves the working directory alone; sets ROOT (the checkout) and PYTHON (the virtual environment's).
#
# HYPHAE_TORCH_INDEX: a package index that has PyTorch's CPU wheels, to spare the download of the CUDA ones.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=$ROOT/.venv
PYTHON=$VENV/bin/python

say() { printf '%s\n' "$*" >&2; }

suits() { # is this a Python that the package runs on and that can make virtual environments?
    "$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11 python; do
        if command -v "$candidate" >/dev/null && suits "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
    say "No Python 3.11, 3.12 or 3.13 with the venv module found on PATH; install one (on Debian: python3 and python3-venv)."
    return 2
}

stamp() { # what the installed packages depend on; the venv's own path, since a moved one does not work
    { cat "$ROOT/pyproject.toml" "$ROOT/constraints.txt"; printf '%s\n' "$VENV"; "$PYTHON" -V; } | cksum
}

installed() { # are these extras installed, from these files?
    local have
    [ -x "$PYTHON" ] && [ -f "$VENV/stamp" ] || return 1
    { read -r have && read -r have_extras; } <"$VENV/stamp" || return 1
    [ "$have" = "$(stamp)" ] || return 1
    local extra
    for extra in ${1//,/ }; do
        case ",$have_extras," in *",$extra,"*) ;; *) return 1 ;; esac
    done
}

install() {
    local extras=$1 python log
    if ! { [ -x "$PYTHON" ] && suits "$PYTHON" && "$PYTHON" -m pip --version >/dev/null 2>&1; }; then
        python=$(find_python) || return
        say "Making .venv with $("$python" -V)"
        "$python" -m venv --clear "$VENV" || return
    fi
    rm -f "$VENV/stamp"
    say "Installing hyphae-gpu[$extras] into .venv (some minutes the first time)"
    log=$VENV/install.log
    : >"$log" || return
    if [ -n "${HYPHAE_TORCH_INDEX:-}" ]; then
        pip_install --index-url "$HYPHAE_TORCH_INDEX" "$(grep '^torch==' "$ROOT/constraints.txt")" || return
    fi
    pip_install --constraint "$ROOT/constraints.txt" --editable "$ROOT[$extras]" || return
    { stamp; printf '%s\n' "$extras"; } >"$VENV/stamp"
}

pip_install() {
    if ! "$PYTHON" -m pip install --disable-pip-version-check --no-input "$@" >>"$log" 2>&1; then
        tail -n 25 "$log" >&2
        say "The installation failed; the whole log is in $log"
        return 1
    fi
}

set_up() {
    installed "$1" && return
    if command -v flock >/dev/null; then # two scripts at once: one installs, the other waits
        (
            flock 9
            installed "$1" || install "$1"
        ) 9>"$ROOT/.venv.lock"
    else
        install "$1"
    fi
}
