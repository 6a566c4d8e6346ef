#!/usr/bin/env bash
# base-image.sh NAME: a stand-in for the official python:3.11-slim-bookworm, for machines that reach no
# registry of images, made from this machine's Debian mirror and its own CPython 3.11 (root; buildah,
# mmdebstrap). It is stored under NAME, so that an unmodified FROM finds it.
set -euo pipefail
python=$(python3 -c 'import sys; assert sys.version_info[:2] == (3, 11); print(sys.base_prefix)')
certificates=/etc/ssl/certs/ca-certificates.crt
tar=$(mktemp --suffix .tar)
trap 'rm -f "$tar"' EXIT
mmdebstrap --quiet --variant=apt --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --aptopt='APT::Install-Recommends "false"' \
    --include=ca-certificates,netbase,tzdata,libssl3,libffi8,libsqlite3-0,libreadline8,libbz2-1.0,liblzma5,zlib1g,libuuid1,libncursesw6,libgdbm6,libdb5.3,libnsl2,libtirpc3,libexpat1,libgdbm-compat4,libcrypt1 \
    --customize-hook="tar -C $python --exclude=site-packages --exclude='*/test' --exclude='*/tests' --exclude=idlelib --exclude=__pycache__ --exclude='config-3.11*' --exclude='*.a' -cf - bin/python3.11 lib/python3.11 lib/libpython3.11.so.1.0 lib/libpython3.so include | tar -C \$1/usr/local -xf -" \
    --customize-hook='for l in python python3; do ln -sfn python3.11 $1/usr/local/bin/$l; done' \
    --customize-hook='mkdir -p $1/usr/local/lib/python3.11/site-packages; chroot $1 ldconfig; chroot $1 /usr/local/bin/python3.11 -m ensurepip --default-pip' \
    --customize-hook="cp $certificates \$1$certificates" \
    --customize-hook="printf '[global]\ncert = $certificates\n' >\$1/etc/pip.conf" \
    --customize-hook='rm -rf $1/var/cache/apt/* $1/var/lib/apt/lists/* $1/usr/share/doc/*' \
    bookworm "$tar" "${SOURCES:-/etc/apt/sources.list.d/debian.sources}"
container=$(buildah from scratch)
buildah add --quiet "$container" "$tar" / >/dev/null
buildah config --cmd python3 --env LANG=C.UTF-8 \
    --env PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
buildah commit --quiet "$container" "$1"
buildah rm "$container" >/dev/null
