#!/bin/sh
# Sets up newer peers than Debian 12 has: nginx with its Brotli modules, HAProxy and lighttpd of
# Debian 13, Caddy of its backports, in a folder of their own below the folder that cargo builds in.
# Nothing is installed on the machine, and none of their programs is started here but for its
# version. The modules of nginx are in the folder nginx-modules beside the programs.
#
#     contests/peers.sh
#     PATH="target/peers/bin:$PATH" gustnado contest contests/c10k.toml
#
# Where that fails, the machine's own packages are installed in their place, as root.
# DEBIAN_MIRROR names another mirror than that of the machine's apt; RELEASE another release.
set -eu
cd "$(dirname "$0")/.."

release=${RELEASE:-trixie}
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
peers=$(cd "$target" && pwd)/peers
root=$peers/$release
programs="nginx haproxy lighttpd caddy"
modules="libnginx-mod-http-brotli-filter libnginx-mod-http-brotli-static"

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install \
        --no-install-recommends "$@"
}

# The archive that the machine's apt uses.
mirror() {
    if [ -n "${DEBIAN_MIRROR:-}" ]; then
        echo "$DEBIAN_MIRROR"
        return
    fi
    apt-get indextargets --format '$(SITE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        grep -v security | awk '{ print $2; exit }' | sed 's|/$||'
}

# The packages are unpacked only: nothing of the root is run while it is made.
unpack() {
    archive=$(mirror)
    [ -n "$archive" ] || { echo "peers: apt names no archive; set DEBIAN_MIRROR" >&2; return 1; }
    command -v mmdebstrap >/dev/null || install mmdebstrap || return 1
    rm -rf "$root"
    mkdir -p "$peers"
    mmdebstrap --quiet --variant=extract --include="nginx haproxy lighttpd $modules" \
        "$release" "$root" "deb $archive $release main" || return 1
    # Caddy is one static program. It may be missing where backports are.
    mmdebstrap --quiet --variant=extract --include=caddy/"$release"-backports "$release" \
        "$root/backports" "deb $archive $release main" "deb $archive $release-backports main" ||
        echo "peers: no Caddy of backports: the machine's own is used" >&2
}

# A program of the root, run by the loader and with the libraries of the root.
wrap() {
    name=$1 program=$2
    shift 2
    loader=$(find "$root/usr/lib" "$root/usr/lib64" -name 'ld-linux*.so*' 2>/dev/null |
        head -n 1)
    libraries=$(find "$root/usr/lib" -maxdepth 1 -type d -name '*-linux-gnu*' | paste -sd: -)
    [ -x "$program" ] && [ -n "$loader" ] || return 1
    printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" %s "$@"\n' \
        "$loader" "$libraries" "$program" "$*" >"$peers/bin/$name"
    chmod +x "$peers/bin/$name"
}

wrap_all() {
    rm -rf "$peers/bin"
    mkdir -p "$peers/bin"
    wrap nginx "$root/usr/sbin/nginx"
    ln -sfn "$root/usr/lib/nginx/modules" "$peers/nginx-modules"
    wrap haproxy "$root/usr/sbin/haproxy"
    wrap lighttpd "$root/usr/sbin/lighttpd" -m "$root/usr/lib/lighttpd"
    if [ -x "$root/backports/usr/bin/caddy" ]; then
        ln -sf "$root/backports/usr/bin/caddy" "$peers/bin/caddy"
    fi
}

version() {
    case $1 in
    nginx) nginx -v 2>&1 ;;
    haproxy) haproxy -v ;;
    lighttpd) lighttpd -v ;;
    caddy) caddy version ;;
    esac | head -n 1
}

if ! { unpack && wrap_all; }; then
    echo "peers: $release could not be unpacked: the machine's own packages are used" >&2
    rm -rf "$peers/bin"
    # The list of modules is words.
    # shellcheck disable=SC2086
    install nginx-light haproxy lighttpd caddy $modules
    ln -sfn /usr/lib/nginx/modules "$peers/nginx-modules"
fi
PATH="$peers/bin:$PATH:/usr/sbin"
for name in $programs; do
    where=$(command -v "$name" || true)
    if [ -n "$where" ]; then
        echo "$name: $(version "$name") ($where)"
    else
        echo "$name: not installed"
    fi
done
