#!/bin/sh
# Fetches the LibTorch that the trainer is built against: PyPI's torch wheel of the pinned version,
# and the two CUDA libraries which its libtorch_cpu.so is linked to even where no GPU is used.
#
#   tools/libtorch.sh          into ${PTO_CACHE:-~/.cache/pytorch-operator}/libtorch/<version>
#
# The folder then holds
#   include/        headers
#   lib/            only what a CPU program loads at run time (an image copies this folder whole)
#   licenses/       the wheels' licence files
#   runtime-files   the names in lib/, one a line
#   complete        written last: a folder without it is unfinished and is made again
# Does nothing when the folder is complete. Safe to interrupt and to run twice at once.
set -eu

torch_version=2.13.0
cudart_version=13.0.96  # what torch 2.13.0 asks for through cuda-toolkit 13.0.3
cupti_version=13.0.85

cache=${PTO_CACHE:-$HOME/.cache/pytorch-operator}
target=$cache/libtorch/$torch_version

if [ -f "$target/complete" ]; then
  echo "LibTorch $torch_version is in $target"
  exit 0
fi

fail() {
  echo "libtorch.sh: $*" >&2
  exit 1
}

command -v python3 >/dev/null || fail "python3 is missing: run tools/deps.sh first"
python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing: run tools/deps.sh first"
[ "$(uname -m)" = x86_64 ] ||
  fail "this script knows only x86_64; give a LibTorch of your own with -DCMAKE_PREFIX_PATH=..."

mkdir -p "$cache/libtorch"
exec 9>"$cache/libtorch/lock"
command -v flock >/dev/null && flock 9
[ ! -f "$target/complete" ] || { echo "LibTorch $torch_version is in $target"; exit 0; }

work=$(mktemp -d "$cache/libtorch/partial.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

echo "Downloading torch $torch_version (about 530 MB)"
# The C++ side does not depend on the Python version, so take a wheel that surely exists.
python3 -m pip download --quiet --no-deps --no-cache-dir --only-binary :all: \
  --python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64 \
  --dest "$work/wheels" "torch==$torch_version" ||
  fail "pip could not download torch $torch_version: is the package registry reachable?"
python3 -m pip download --quiet --no-deps --no-cache-dir --only-binary :all: \
  --dest "$work/wheels" "nvidia-cuda-runtime==$cudart_version" "nvidia-cuda-cupti==$cupti_version" ||
  fail "pip could not download the CUDA runtime libraries"

python3 - "$work" <<'PYTHON'
import os, shutil, sys, zipfile

work = sys.argv[1]
out = os.path.join(work, "out")
wanted = {"libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcudart.so.13", "libcupti.so.13"}
found = set()
for name in sorted(os.listdir(os.path.join(work, "wheels"))):
    with zipfile.ZipFile(os.path.join(work, "wheels", name)) as wheel:
        for entry in wheel.namelist():
            base = os.path.basename(entry)
            if entry.startswith("torch/include/"):
                path = os.path.join(out, entry[len("torch/"):])
            elif base in wanted and "/lib/" in entry:
                path = os.path.join(out, "lib", base)
                found.add(base)
            elif ".dist-info/licenses/" in entry:
                inside = entry.split(".dist-info/licenses/", 1)[1]
                path = os.path.join(out, "licenses", name.split("-")[0], inside)
            elif base.lower() in ("license.txt", "license"):
                path = os.path.join(out, "licenses", name.split("-")[0], base)
            else:
                continue
            if entry.endswith("/"):
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with wheel.open(entry) as source, open(path, "wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
            if path.startswith(os.path.join(out, "lib") + os.sep):
                os.chmod(path, 0o755)
if found != wanted:
    sys.exit("libtorch.sh: not in the wheels: " + ", ".join(sorted(wanted - found)))
with open(os.path.join(out, "runtime-files"), "w") as listing:
    listing.writelines(name + "\n" for name in sorted(wanted))
PYTHON

sync
rm -rf "$target"
mv "$work/out" "$target"
echo "torch $torch_version" >"$target/complete"
echo "LibTorch $torch_version is in $target"
