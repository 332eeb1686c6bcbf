#!/bin/sh
# Keep what the tables of tuberculosis are made of, from what tb-phantoms.sh and tb-real.sh trained, with the paper's
# rows beside ours: tb-phantoms, tb-ablation, tb-real, tb-montgomery and tb-shenzhen in KEPT, such as results.
#
#     sh experiments/tb-keep.sh PHANTOM-RUNS REAL-RUNS KEPT
#
# RADREASON is the command, where it is not on the PATH.
set -eu

phantoms=$1
real=$2
kept=$3
radreason=${RADREASON:-radreason}

# parts NAME P2-AND-P3-ROW P4-ROW: the paper's rows beside a method with less data
parts() {
    echo "--paper $1@75=table:chestunlimited/P2/$2 --paper $1@50=table:chestunlimited/P3/$2"
    echo "--paper $1@25=table:chestunlimited/P4/$3"
}

set -- hybrid plain matched relation primitives svm no-pyramid gru two-branches adinet bottleneck
for name; do
    set -- "$@" "$phantoms/$name"
    shift
done
# shellcheck disable=SC2046
$radreason compare "$@" --data "$phantoms/phantoms" --baseline plain matched --keep "$kept/tb-phantoms" \
    --paper 'hybrid=table:chestsota/O2*' --paper plain=table:chestsota/M4 --paper no-pyramid=table:chestsota/M2 \
    --paper relation=table:chestsota/M41 --paper gru=table:chestsota/M42 --paper two-branches=table:chestsota/S1 \
    --paper adinet=table:chestsota/S2 --paper primitives=table:chestsota/A1 --paper svm=table:chestsota/A2 \
    $(parts hybrid Our-Efficient-B4-FPN Our-Efficient-B-FPN) $(parts plain Efficient-B4-FPN Efficient-B4-FPN) \
    $(parts relation Efficient-B4-FPN-GCN-Relation Efficient-B4-FPN-GCN-Relation) \
    $(parts primitives Low-Level-Feature Low-Level-Feature) \
    $(parts svm Basic-visual-Feature Basic-visual-Feature)

rows="no-bn2 no-coupling bn1-alone no-channel-attention no-bn1 no-gradient no-alternation relation"
set -- "$phantoms/hybrid/fraction-100"
number=1
beside="--paper full=tab:chestabl/1"
for row in $rows; do
    number=$((number + 1))
    beside="$beside --paper $row=tab:chestabl/$number"
    set -- "$@" "$phantoms/row-$row/fraction-100"
done
# shellcheck disable=SC2086
$radreason compare "$@" --names full $rows --data "$phantoms/phantoms" --baseline full \
    --keep "$kept/tb-ablation" $beside

for place in folds=tb-real:films montgomery=tb-montgomery:films-by-site shenzhen=tb-shenzhen:films-by-site; do
    runs=$real/${place%%=*}
    names=${place#*=}
    set -- "$runs/plain" "$runs/matched" "$runs/hybrid"
    [ ! -d "$runs/padchest" ] || set -- "$@" "$runs/padchest"
    $radreason compare "$@" --data "$real/${names#*:}" --baseline plain matched --keep "$kept/${names%:*}"
done
