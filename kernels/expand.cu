// The first half of a gossip round: which nodes the frontier's edges lead to, and a slot for each seen the first time.
#include "wave.cuh"

// The place of a key; it is put there where it is new, and then told by `fresh`. NOWHERE where there is no room left.
__device__ uint32 find_or_put(const Table &table, uint64 key, int64 capacity, int64 *counters, bool &fresh) {
    int64 place = int64(Table::mixed(key)) & table.mask;
    for (int64 probe = 0; probe <= table.mask; ++probe) {
        uint64 found = *static_cast<volatile uint64 *>(&table.entries[place].key);
        if (found == EMPTY) {
            if (seen(&counters[SLOTS]) >= capacity) break;
            found = atomicCAS(&table.entries[place].key, EMPTY, key);
            fresh = found == EMPTY;
        }
        if (fresh || found == key) return uint32(place);
        place = (place + 1) & table.mask;
    }
    overflow(counters, SLOT_ROOM);
    return NOWHERE;
}

// How many edges of a row have a bandwidth, among its first `count`.
__device__ int64 limited_edges(const int32 *bandwidths, int64 first, int64 count) {
    int64 limited = 0;
    for (int64 base = 0; base < count; base += WARP) {
        int64 i = base + lane_of_warp();
        limited += __popc(__ballot_sync(ALL_LANES, i < count && bandwidths[first + i] >= 0));
    }
    return limited;
}

// A warp takes a node of the frontier: slots frontier[0 .. count - 1].
//
// It looks at the edges it can pay and, where its semantic edges are more than the fanout (0: no limit), at all its
// semantic edges, since the fanout asks for all their scores (spec 3.4). For edge i of its row
// pending[starts[f] + i] is the table's place of (diff, target), NOWHERE where that edge is not looked at.
// spans[f] = 2 * (how many edges it can pay) + (1 where the fanout has to choose); starts[f] = -1: it does not send.
//
// graph: offsets, targets, costs, types; bandwidths are read where `limited`. A diff runs while rounds + 1 < max_hops;
// in a sweep each node sends while its hop + 1 < max_hops (spec 7.2). steps[b] becomes round + 1, the steps that diff b
// has begun in this call. rounds_before and ran_before: its rounds, and rounds and sweeps, before the call.
extern "C" __global__ void expand(const int64 *offsets, const int32 *targets, const int32 *costs, const int8 *types,
                                  const int32 *bandwidths, int64 limited, int64 node_count, const int32 *frontier,
                                  int64 count, int32 *rows, int32 *nodes, const int32 *energies, const int32 *hops,
                                  int64 slot_capacity, Entry *entries, int64 mask, const int32 *max_hops,
                                  const int64 *rounds_before, const int64 *ran_before, int32 *steps, int64 round,
                                  int64 round_limit, int64 sweep, int64 fanout, uint32 *pending,
                                  int64 pending_capacity, int64 *starts, int64 *spans, int64 offer_capacity,
                                  int64 *counters) {
    Table table{entries, mask};
    int lane = lane_of_warp();
    for (int64 f = first_warp(); f < count; f += all_warps()) {
        int64 slot = frontier[f];
        int32 b = rows[slot], v = nodes[slot], energy = energies[slot];
        bool runs = sweep || rounds_before[b] + round + 1 < max_hops[b];
        bool sends = runs && (!sweep || hops[slot] + 1 < max_hops[b]);
        if (runs && lane == 0) {
            atomicMax(&steps[b], int32(round + 1));
            if (ran_before[b] + round >= round_limit) atomicExch(reinterpret_cast<uint64 *>(&counters[TOO_LONG]), 1ull);
        }
        if (lane == 0) starts[f] = -1;
        if (!sends) continue;

        int64 first = offsets[v], degree = offsets[v + 1] - first, paid = 0, semantic = 0;
        for (int64 base = 0; base < degree; base += WARP) {
            int64 i = base + lane;
            uint32 payable = __ballot_sync(ALL_LANES, i < degree && costs[first + i] < energy);
            paid += __popc(payable);
            if (fanout > 0) semantic += __popc(__ballot_sync(ALL_LANES, i < degree && types[first + i] == 0));
            // edges stand in order of cost
            else if (payable != ALL_LANES) break;
        }
        bool chooses = fanout > 0 && semantic > fanout;
        int64 length = chooses ? degree : paid, start = 0;
        int64 limits = limited ? limited_edges(bandwidths, first, paid) : 0;
        if (lane == 0) {
            start = int64(atomicAdd(reinterpret_cast<uint64 *>(&counters[PENDING]), uint64(length)));
            if (limits > 0) {
                int64 before = int64(atomicAdd(reinterpret_cast<uint64 *>(&counters[LIMITED]), uint64(limits)));
                if (counters[OFFERS] + before + limits > offer_capacity) overflow(counters, OFFER_ROOM);
            }
        }
        start = __shfl_sync(ALL_LANES, start, 0);
        if (start + length > pending_capacity) {
            if (lane == 0) overflow(counters, PENDING_ROOM);
            continue;
        }
        if (lane == 0) {
            starts[f] = start;
            spans[f] = 2 * paid + chooses;
        }
        for (int64 base = 0; base < length; base += WARP) {
            int64 i = base + lane;
            bool wanted = i < length && (i < paid || types[first + i] == 0), fresh = false;
            int32 u = wanted ? targets[first + i] : 0;
            uint32 place = NOWHERE;
            if (wanted) place = find_or_put(table, uint64(b * node_count + u), slot_capacity, counters, fresh);
            int64 taken = place_in(&counters[SLOTS], fresh);
            if (fresh && taken < slot_capacity) {
                entries[place].slot = taken;
                rows[taken] = b;
                nodes[taken] = u;
            } else if (fresh) {
                overflow(counters, SLOT_ROOM);
            }
            if (i < length) pending[start + i] = place;
        }
    }
}
