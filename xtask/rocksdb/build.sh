#!/bin/sh
# Builds librocksdb.a from the sources that librocksdb-sys ships, into the directory $1, with the
# optimisation level $2.
#
# The crate's build script compiles 343 files one by one, each of which parses the same headers:
# a quarter of an hour on two cores. Here each compiler gets one file that includes many of them,
# with the flags of the crate's build script in its release profile, which takes a fifth of that.
# A compiler needs about 1.3 GiB of memory.
set -eu
target=$1
level=$2
units=6

crate() {
    cargo metadata --locked --format-version 1 | tr ',' '\n' |
        sed -n "s|^\"manifest_path\":\"\(.*/$1-[0-9][^/]*\)/Cargo.toml\"\$|\1|p" | head -n 1
}
sources=$(crate librocksdb-sys)
lz4=$(crate lz4-sys)/liblz4/lib
for needed in "$sources/rocksdb_lib_sources.txt" "$sources/build_version.cc" "$lz4/lz4.h"; do
    [ -f "$needed" ] || { echo "cannot build RocksDB: $needed is missing" >&2; exit 1; }
done

work="$target/build"
rm -rf "$work"
mkdir -p "$work"
# Neighbours in the list share headers; build_version.cc stands beside the list.
{ sed '/^ *$/d; /^util\/build_version.cc$/d; s|^|rocksdb/|' "$sources/rocksdb_lib_sources.txt"
  echo build_version.cc
} | awk -v units="$units" -v work="$work" '
    { line[NR] = $0 }
    END {
        for (i = 1; i <= NR; i++)
            printf "#include \"%s\"\n", line[i] > (work "/unit" int((i - 1) * units / NR) ".cc")
    }'

flags="-O$level -ffunction-sections -fdata-sections -fPIC -std=c++20 -w -include cstdint \
-DLZ4=1 -DNDEBUG=1 -DHAVE_ALIGNED_NEW -DHAVE_UINT128_EXTENSION -DOS_LINUX -DROCKSDB_PLATFORM_POSIX \
-DROCKSDB_LIB_IO_POSIX -DROCKSDB_SCHED_GETCPU_PRESENT -DROCKSDB_AUXV_GETAUXVAL_PRESENT \
-DROCKSDB_FALLOCATE_PRESENT -DROCKSDB_RANGESYNC_PRESENT"
# Names of files in log messages tell nothing of this machine, and are the same on every one.
flags="$flags -ffile-prefix-map=$sources=/rocksdb -ffile-prefix-map=$work=/build"
case "$(uname -m)" in
    x86_64) flags="$flags -m64 -msse2" ;;
esac
includes="-I$sources/rocksdb/include -I$sources/rocksdb \
-I$sources/rocksdb/third-party/gtest-1.8.1/fused-src -I$lz4 -I$sources"

compile() {
    "${CXX:-c++}" $flags $includes -c "$work/unit$1.cc" -o "$work/unit$1.o" || return 1
    : >"$work/unit$1.done"
    echo "RocksDB: $(ls "$work"/*.done | wc -l) of $units parts compiled"
}

# One compiler a core: each worker takes every n-th unit.
workers=$(nproc)
[ "$workers" -le "$units" ] || workers=$units
worker=0
pids=""
while [ "$worker" -lt "$workers" ]; do
    (
        unit=$worker
        while [ "$unit" -lt "$units" ]; do
            compile "$unit"
            unit=$((unit + workers))
        done
    ) &
    pids="$pids $!"
    worker=$((worker + 1))
done
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
[ "$failed" = 0 ] || { echo "RocksDB does not compile: see above" >&2; exit 1; }

ar crs "$work/librocksdb.a" "$work"/unit*.o
# The name appears only when the file is whole.
mv "$work/librocksdb.a" "$target/"
rm -rf "$work"
