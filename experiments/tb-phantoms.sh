#!/bin/sh
# Everything on phantoms of chest radiographs in one go: all methods, the rows of the ablation, parts of the data.
#
#     sh experiments/tb-phantoms.sh RUNS [FOLD ...]
#
# RUNS is a folder to write; without folds all five. Stopped and started again it goes on, and folds may be added
# by a later call. RADREASON is the command, where it is not on the PATH. On one core a fold takes about eight
# minutes, a thousand phantoms in all.
set -eu

here=$(dirname "$0")
runs=$1
shift
folds=${*:-0 1 2 3 4}
radreason=${RADREASON:-radreason}
data=$runs/phantoms

[ -f "$data/splits.json" ] ||
    $radreason prepare phantom-cxr --out "$data" --size 64 --limit 1000 --folds 5 --repeats 1

# crossval NAME EXPERIMENT [FRACTION ...]
crossval() {
    name=$1
    experiment=$2
    shift 2
    # shellcheck disable=SC2086
    $radreason crossval "$here/$experiment.toml" --data "$data" --out "$runs/$name" --repeats 0 --folds $folds \
        --fraction "${@:-1}"
}

# P1 to P4 of the paper
for method in hybrid=tb-compact plain=controls/tb-compact-plain matched=controls/tb-compact-matched \
    relation=rivals/tb/relation primitives=rivals/tb/primitives svm=rivals/tb/svm; do
    crossval "${method%%=*}" "${method#*=}" 1 0.75 0.5 0.25
done

# the other methods
for method in no-pyramid=controls/tb-compact-no-pyramid gru=rivals/tb/gru two-branches=rivals/tb/two-branches \
    adinet=rivals/tb/adinet bottleneck=rivals/tb/bottleneck; do
    crossval "${method%%=*}" "${method#*=}" 1
done

# the rows of the ablation; the one with everything on is hybrid
for row in no-bn2 no-coupling bn1-alone no-channel-attention no-bn1 no-gradient no-alternation relation; do
    crossval "row-$row" "ablations/tb-compact/$row" 1
done
