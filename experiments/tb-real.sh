#!/bin/sh
# Real radiographs of Shenzhen and Montgomery County: five folds, and each hospital tested by models of the other.
#
#     sh experiments/tb-real.sh FOLDER RUNS [PADCHEST]
#
# FOLDER holds images.csv and what it names (examples/tables_for_radiographs.py), RUNS is a folder to write, and
# PADCHEST the network that `radreason network learn --readings padchest` found; without it the row of it is
# left out. Stopped and started again it goes on. RADREASON and PYTHON are the commands, where they are not on
# the PATH. It takes about ten minutes on one core.
set -eu

here=$(dirname "$0")
folder=$1
runs=$2
padchest=${3:-}
radreason=${RADREASON:-radreason}
films=$runs/films
sites=$runs/films-by-site

mkdir -p "$runs"
[ -f "$runs/cases.csv" ] || ${PYTHON:-python} "$here/../examples/tables_for_radiographs.py" "$folder" "$runs/cases.csv"
for data in "$films" "$sites"; do
    [ -f "$data/splits.json" ] || $radreason prepare cxr --cases "$runs/cases.csv" --schema tb --keep site \
        --size 64 --margin 0 --folds 5 --repeats 1 --out "$data"
done
[ -f "$runs/by-site" ] || $radreason data split "$sites" --by site --repeats 3 > "$runs/by-site"

# train NAME EXPERIMENT [OPTION ...]
train() {
    name=$1
    experiment=$2
    shift 2
    $radreason crossval "$here/$experiment.toml" --data "$films" --out "$runs/folds/$name" "$@"
    $radreason crossval "$here/$experiment.toml" --data "$sites" --out "$runs/montgomery/$name" --folds 0 "$@"
    $radreason crossval "$here/$experiment.toml" --data "$sites" --out "$runs/shenzhen/$name" --folds 1 "$@"
}

train plain controls/tb-real-plain
train matched controls/tb-real-matched
train hybrid tb-real
[ -z "$padchest" ] || train padchest tb-real-padchest \
    --set "model.first_net.given=$padchest" --set "model.second_net.given=$padchest"
