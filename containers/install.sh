#!/bin/sh
# What is installed in the image, by the Dockerfile and by qdsweep.def:
#   install.sh libraries [EXTRA...]
#   install.sh project
set -eu
home=/opt/qdsweep
site=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
what=$1
shift
case $what in
libraries)
    # Tests of libraries are left out: a tenth of the size. What is left is compiled on all cores.
    install="python -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-compile
        --root-user-action=ignore --require-hashes"
    $install -r $home/envs/requirements.lock
    for extra; do
        case $extra in
        rl) $home/envs/rl.sh $install ;;
        *) $install --no-deps -r "$home/envs/$extra.lock" ;;
        esac
    done
    find "$site" -type d -name tests -prune -exec rm -r {} +
    python -m compileall -qq -j 0 "$site" || true  # some libraries have templates that are no Python
    rm -rf /root/.cache
    ;;
project)
    find $home -name __pycache__ -prune -exec rm -r {} +
    python -m compileall -q $home/workflow
    echo $home/workflow > "$site/qdsweep.pth"
    printf '#!/bin/sh\nexec python -P -m qdsweep "$@"\n' > /usr/local/bin/qdsweep
    chmod 755 /usr/local/bin/qdsweep
    chmod -R a+rX $home
    ;;
esac
