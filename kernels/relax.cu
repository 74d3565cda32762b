// The second half of a gossip round: offers over the frontier's edges (spec 3.5), then the rise of those who took one.
#include "fanout.cuh"
#include "philox.cuh"
#include "wave.cuh"

// A warp takes a node of the frontier, as `expand` left it: an offer over each edge that it can pay and that is within
// the fanout, if the target's gate is open and the offer beats what it held at the round's start.
//
// Offers over edges with a bandwidth go into the lists offer_*, for the caller to choose among (spec 2.8). Of the
// others some get lost (spec 3.10), and then unmet[slot] = round + 1; the rest raise best[target], and each slot that
// so rises is listed in `risen` once. keys: room as `pending` has, for the fanout's choice.
extern "C" __global__ void __launch_bounds__(256, 4)
    relax(const int64 *offsets, const int32 *targets, const int32 *costs, const int8 *types, const int32 *bandwidths,
          int64 limited, const int32 *frontier, int64 count, const int32 *rows, const int32 *nodes,
          const int32 *energies, uint64 *best, const double *scores, int32 *unmet, const Entry *entries,
          const uint32 *pending, const int64 *starts, const int64 *spans, uint64 *keys, int64 fanout,
          const int64 *diff_numbers, const int64 *ran_before, int64 round, int64 threshold, int64 seed,
          int64 epoch_counter, int32 *risen, int64 *offer_rows, int64 *offer_edges, int32 *offer_sources,
          int32 *offer_targets, int32 *offer_energies, int64 *counters) {
    if (counters[OVERFLOW] != 0) return;
    Losses losses{threshold, seed, epoch_counter};
    int lane = lane_of_warp();
    int64 relaxations = 0, lost = 0;
    for (int64 f = first_warp(); f < count; f += all_warps()) {
        int64 start = starts[f];
        if (start < 0) continue;
        int64 slot = frontier[f], paid = spans[f] >> 1;
        bool chooses = spans[f] & 1;
        int32 b = rows[slot], v = nodes[slot], energy = energies[slot];
        int64 first = offsets[v], degree = offsets[v + 1] - first;

        Cut cut{0, 0};
        if (chooses) {
            int64 semantic = 0;
            for (int64 base = 0; base < degree; base += WARP) {
                int64 i = base + lane;
                bool takes_part = i < degree && types[first + i] == 0;
                if (i < degree) {
                    keys[start + i] = takes_part ? in_order(scores[entries[pending[start + i]].slot]) : 0;
                }
                semantic += __popc(__ballot_sync(ALL_LANES, takes_part));
            }
            cut = cut_of(keys + start, targets + first, degree, semantic, fanout);
        }
        bool any_lost = false;
        for (int64 base = 0; base < paid; base += WARP) {
            int64 i = base + lane, edge = first + i;
            bool offered = i < paid;
            int32 u = offered ? targets[edge] : 0, offer = offered ? energy - costs[edge] : 0;
            if (offered && chooses && types[edge] == 0) offered = cut.keeps(keys[start + i], u);
            relaxations += offered;
            int64 target = offered ? entries[pending[start + i]].slot : 0;
            int32 held = offered ? energies[target] : CLOSED;
            bool raises = held != CLOSED && offer > held;

            bool asks = raises && limited && bandwidths[edge] >= 0;
            if (limited) {
                int64 at = place_in(&counters[OFFERS], asks);
                if (asks) {
                    offer_rows[at] = b;
                    offer_edges[at] = edge;
                    offer_sources[at] = v;
                    offer_targets[at] = u;
                    offer_energies[at] = offer;
                }
            }
            bool sent = raises && !asks;
            bool gone = sent && threshold > 0 && losses.hit(ran_before[b] + round, v, u, diff_numbers[b]);
            lost += gone;
            any_lost = any_lost || gone;
            bool rises = false;
            if (sent && !gone) {
                uint64 before = atomicMax(&best[target], packed(offer, v));
                rises = energy_of(before) <= max(held, 0);
            }
            int64 at = place_in(&counters[RISEN], rises);
            if (rises) risen[at] = int32(target);
        }
        if (threshold > 0 && __any_sync(ALL_LANES, any_lost) && lane == 0) unmet[slot] = int32(round + 1);
    }
    relaxations = sum_over_lanes(relaxations, WARP);
    if (lane == 0 && relaxations > 0) add(&counters[RELAXATIONS], relaxations);
    if (threshold == 0) return;
    lost = sum_over_lanes(lost, WARP);
    if (lane == 0 && lost > 0) add(&counters[LOST], lost);
}

// The slots in `risen` take what was offered. A first arrival's hop is the round's, in a sweep one more than its
// parent's (spec 3.7, 7.2).
extern "C" __global__ void settle(const int32 *risen, const int32 *rows, int32 *energies, const uint64 *best,
                                  int32 *hops, int32 *rose, const Entry *entries, int64 mask, int64 node_count,
                                  const int64 *rounds_before, int64 round, int64 sweep, const int64 *counters) {
    if (counters[OVERFLOW] != 0) return;
    Table table{const_cast<Entry *>(entries), mask};
    for (int64 i = first_item(); i < counters[RISEN]; i += all_threads()) {
        int64 slot = risen[i];
        int32 b = rows[slot];
        if (energies[slot] < 0 && sweep) {
            // The parent was reached before this sweep, so its hop is not being written now.
            int64 place = table.place_of(uint64(b * node_count + parent_of(best[slot])));
            hops[slot] = hops[entries[place].slot] + 1;
        } else if (energies[slot] < 0) {
            hops[slot] = int32(rounds_before[b] + round + 1);
        }
        energies[slot] = energy_of(best[slot]);
        rose[slot] = int32(round + 1);
    }
}
