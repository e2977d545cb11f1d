# run_cached.sh FOLDER SOURCES [NAME=VALUE]... WORD...: cached_result.py with a store in FOLDER, for what lies in SOURCES.
folder=$1 sources=$2
shift 2
settings=()
while [[ $1 == *=* && $1 != --* ]]; do
  settings+=("$1")
  shift
done
exec env -u FSDP_TEST_ALL -u FSDP_TEST_FRESH FSDP_SOURCE_DIR="$sources" FSDP_BINARY_DIR="$folder/build" GTEST_OUTPUT="xml:$folder/xml" "${settings[@]}" \
  /usr/bin/python3 -S -B "$(dirname "$0")/../../cached_result.py" --name unit/name --store "$folder/store" --noted "$folder/noted" "$@"
