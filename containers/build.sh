#!/usr/bin/env bash
# Builds the image that every run can take, and makes a .sif of it:
#   containers/build.sh                          containers/qdsweep.sif (= make image)
#   containers/build.sh /scratch/me/qdsweep.sif  another place
#   containers/build.sh --archive qdsweep.tar    only the Docker image, for a cluster that has Apptainer
#                                                but no Docker; there: apptainer build --force
#                                                containers/qdsweep.sif docker-archive:qdsweep.tar
#   ENGINE=podman containers/build.sh            not the first of docker, podman, buildah that works
#   DIGEST=sha256:... containers/build.sh        the base image pinned to the byte
#   EXTRAS=ray containers/build.sh               with what the engine ray needs
#   EXTRAS=rl PIP_EXTRA_INDEX_URL=... containers/build.sh   with torch, from an index with builds for CPUs
#   APPTAINER_MKSQUASHFS_ARGS="-comp zstd" containers/build.sh   compressed in another way than gzip's quickest
# Without any of them: apptainer build containers/qdsweep.sif containers/qdsweep.def
set -euo pipefail

fail() {
    echo "containers/build.sh: $*" >&2
    exit 2
}

# The program that answers, or why none does.
find_engine() {
    local engine asleep=
    for engine in ${ENGINE:-docker podman buildah}; do
        command -v "$engine" >/dev/null || continue
        if "$engine" info >/dev/null 2>&1; then
            echo "$engine"
            return
        fi
        asleep+=" $engine"
    done
    [[ -z $asleep ]] || fail "found$asleep, but it does not answer: is the engine running" \
        "(sudo systemctl start docker), and may you use it? Or install buildah, or build" \
        "without any: apptainer build containers/qdsweep.sif containers/qdsweep.def"
    fail "none of ${ENGINE:-docker, podman, buildah} is on the PATH: install one, or build without:" \
        "apptainer build containers/qdsweep.sif containers/qdsweep.def"
}

root=$(cd "$(dirname "$0")/.." && pwd)
out=$root/containers/qdsweep.sif
archive=
case ${1:-} in
-h | --help)
    sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0"
    exit
    ;;
--archive) archive=$(realpath -m "${2:?--archive needs a file name}") ;;
-*) fail "$1: unknown; see --help" ;;
?*) out=$(realpath -m "$1") ;;
esac
target=${archive:-$out}
[[ -d $(dirname "$target") && -w $(dirname "$target") ]] || fail "$(dirname "$target") is no folder that you can write to"
engine=$(find_engine)
if [[ -z $archive ]]; then
    converter=$(command -v apptainer || command -v singularity) ||
        fail "neither apptainer nor singularity is on the PATH: install one, or take --archive FILE" \
            "here and convert it where there is one"
fi

cd "$root"
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' workflow/qdsweep/versions.py)
commit=$(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
tag=localhost/qdsweep:$version
echo "building $tag with $engine"
build=build
[[ $engine == buildah ]] && build=bud
"$engine" $build --build-arg DIGEST="${DIGEST:-}" --build-arg EXTRAS="${EXTRAS:-}" \
    --build-arg PIP_EXTRA_INDEX_URL="${PIP_EXTRA_INDEX_URL:-}" \
    --build-arg VERSION="$version" --build-arg COMMIT="$commit" --tag "$tag" \
    --file containers/Dockerfile .

work=$(mktemp -d)
trap 'rm -rf "$work" "$out.part"' EXIT
tar=${archive:-$work/image.tar}
case $engine in
docker) docker save --output "$tar" "$tag" ;;
podman) podman save --quiet --format docker-archive --output "$tar" "$tag" ;;
buildah) buildah push --quiet "$tag" "docker-archive:$tar:$tag" ;;
esac
if [[ -n $archive ]]; then
    echo "made $archive ($(du -h "$archive" | cut -f1))"
    exit
fi
# Quick rather than a tenth smaller; renamed, so that runs in the old image keep it.
"$converter" build --force --mksquashfs-args "${APPTAINER_MKSQUASHFS_ARGS:--comp gzip -Xcompression-level 1}" "$out.part" \
    "docker-archive:$tar"
mv "$out.part" "$out"
echo "made $out ($(du -h "$out" | cut -f1), SHA-256 $(sha256sum "$out" | cut -d' ' -f1))"
