// Resonance (spec 3.12): (+, x) rounds over flow edges, integers throughout. A block takes an origin.
#include "wave.cuh"

// What a block knows of a node that it has met: one sector of memory. key: node + 1, 0 in an empty cell.
struct Cell {
    uint64 key;
    uint64 received;  // in this round
    uint64 summed;    // over the rounds
    uint64 sent;      // a unit of weight, over the rounds
};

struct Flow {
    const int64 *offsets;
    const int32 *targets, *weights;
    const int64 *totals;
};

// Rounds alternate between two counters, so that one is cleared while the other is read.
struct Tally {
    int64 turn, used, receiving[2], sending[2];
    int32 full, long_rows;
};

// Rows longer than this are walked by all warps of a block together.
constexpr int64 LONG_ROW = 1024;

// A block's own table and lists; it leaves the table empty, so that work follows what was met.
struct Scope {
    Cell *cells;
    int64 capacity;  // 2^k, twice the block's threads at least
    int32 *used;       // places of all cells in use
    int32 *receivers;  // places of those that received in this round
    int32 *senders;    // node numbers
    int64 *factors;    // what each of them sends a unit of weight

    __device__ int64 place_of(int32 node) const {
        uint64 key = uint64(node) + 1;
        int64 mask = capacity - 1, place = int64(Table::mixed(key)) & mask;
        for (int64 probe = 0; probe <= mask && cells[place].key != 0; ++probe) {
            if (cells[place].key == key) return place;
            place = (place + 1) & mask;
        }
        return -1;
    }

    // The same for a node that is put there where it is new; -1 where half of the table is in use. At most a thread each
    // is put beyond that.
    __device__ int64 place_for(int32 node, const int64 *in_use, bool &fresh) const {
        uint64 key = uint64(node) + 1;
        int64 mask = capacity - 1, place = int64(Table::mixed(key)) & mask;
        for (int64 probe = 0; probe <= mask; ++probe) {
            uint64 found = *static_cast<volatile uint64 *>(&cells[place].key);
            if (found == 0) {
                if (seen(in_use) >= capacity / 2) break;
                found = atomicCAS(&cells[place].key, 0ull, key);
                fresh = found == 0;
            }
            if (fresh || found == key) return place;
            place = (place + 1) & mask;
        }
        return -1;
    }
};

__device__ __forceinline__ int64 warp_of_block() { return threadIdx.x / WARP; }
__device__ __forceinline__ int64 warps_of_block() { return blockDim.x / WARP; }

// A warp sends over the edges at first, first + 1, ... of each 32 that begin `step` apart.
__device__ void send(const Flow &flow, const Scope &scope, Tally &tally, int64 *receiving, int64 factor, int64 first,
                     int64 last, int64 step) {
    for (int64 base = first; base < last; base += step) {
        int64 edge = base + lane_of_warp(), place = -1;
        bool given = edge < last, fresh = false, met = false;
        if (given) place = scope.place_for(flow.targets[edge], &tally.used, fresh);
        if (place >= 0) met = atomicAdd(&scope.cells[place].received, uint64(factor * flow.weights[edge])) == 0;
        if (given && place < 0) atomicExch(&tally.full, 1);
        int64 at = place_in(&tally.used, fresh);
        if (fresh) scope.used[at] = int32(place);
        at = place_in(receiving, met);
        if (met) scope.receivers[at] = int32(place);
    }
}

// All senders send: a warp each, all warps of the block where a row is long. Ends at a barrier.
__device__ void spread(const Flow &flow, const Scope &scope, Tally &tally, int64 round) {
    int64 count = tally.sending[round & 1], *receiving = &tally.receiving[round & 1];
    if (threadIdx.x == 0) tally.sending[(round + 1) & 1] = tally.receiving[(round + 1) & 1] = 0;
    for (int64 i = warp_of_block(); i < count; i += warps_of_block()) {
        int64 first = flow.offsets[scope.senders[i]], last = flow.offsets[scope.senders[i] + 1];
        if (last - first <= LONG_ROW) {
            send(flow, scope, tally, receiving, scope.factors[i], first, last, WARP);
        } else if (lane_of_warp() == 0) {
            atomicExch(&tally.long_rows, 1);
        }
    }
    __syncthreads();
    if (tally.long_rows == 0) return;
    for (int64 base = 0; base < count; base += WARP) {
        int64 mine = base + lane_of_warp();
        int64 node = mine < count ? scope.senders[mine] : 0;
        bool is_long = mine < count && flow.offsets[node + 1] - flow.offsets[node] > LONG_ROW;
        for (uint32 left = __ballot_sync(ALL_LANES, is_long); left != 0; left &= left - 1) {
            int64 i = base + __ffs(int(left)) - 1;
            int64 first = flow.offsets[scope.senders[i]], last = flow.offsets[scope.senders[i] + 1];
            send(flow, scope, tally, receiving, scope.factors[i], first + warp_of_block() * WARP, last, blockDim.x);
        }
    }
    __syncthreads();
}

struct Law {
    int64 start, numerator, denominator, cut, rounds;

    __device__ int64 factor(int64 held, int64 total) const { return held / denominator * numerator / total; }
};

// What was received is summed, and those who received more than the cut are the next round's senders.
__device__ void settle_received(const Flow &flow, const Scope &scope, Tally &tally, const Law &law, int64 round) {
    int64 count = tally.receiving[round & 1];
    // Where it is 0 others may be reading it still.
    if (threadIdx.x == 0 && tally.long_rows != 0) tally.long_rows = 0;
    for (int64 base = warp_of_block() * WARP; base < count; base += blockDim.x) {
        int64 i = base + lane_of_warp(), factor = 0;
        int32 node = 0;
        if (i < count) {
            Cell &cell = scope.cells[scope.receivers[i]];
            int64 held = int64(cell.received);
            cell.received = 0;
            cell.summed += uint64(held);
            node = int32(cell.key - 1);
            int64 total = flow.totals[node];
            if (held > law.cut && total > 0 && round + 1 < law.rounds) factor = law.factor(held, total);
            cell.sent += uint64(factor);
        }
        int64 at = place_in(&tally.sending[(round + 1) & 1], factor > 0);
        if (factor > 0) {
            scope.senders[at] = node;
            scope.factors[at] = factor;
        }
    }
}

// The neighbour over a node's own flow edges that sent it most (ties: lowest number); -1: none. A warp together.
__device__ int32 through_of(const Flow &flow, const Scope &scope, int32 node) {
    int64 most = 0, last = flow.offsets[node + 1];
    int32 through = -1;
    for (int64 k = flow.offsets[node] + lane_of_warp(); k < last; k += WARP) {
        int32 v = flow.targets[k];
        int64 place = scope.place_of(v), amount = place < 0 ? 0 : int64(scope.cells[place].sent) * flow.weights[k];
        if (amount > most || (amount == most && amount > 0 && v < through)) {
            most = amount;
            through = v;
        }
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        int64 its_most = __shfl_xor_sync(ALL_LANES, most, step);
        int32 its = __shfl_xor_sync(ALL_LANES, through, step);
        if (its_most > most || (its_most == most && its >= 0 && its < through)) {
            most = its_most;
            through = its;
        }
    }
    return through;
}

// Blocks take turns at groups[0 .. group_count - 1]: rows of origins, asked of nodes[asked[g]] .. nodes[asked[g + 1] - 1].
// next: the turn that comes next, at first 0. Each block has `capacity` cells, all empty; lists: three times as many, and
// as many factors. failed[turn] = 1 where these did not suffice; nothing else is then written for that group.
extern "C" __global__ void resonance(const int64 *offsets, const int32 *targets, const int32 *weights,
                                     const int64 *totals, const int32 *origins, const int64 *asked, const int32 *nodes,
                                     const int64 *groups, int64 group_count, int64 start, int64 numerator,
                                     int64 denominator, int64 cut, int64 rounds, Cell *cells, int64 capacity,
                                     int32 *lists, int64 *factors, uint64 *next, int64 with_throughs, int64 *values,
                                     int32 *throughs, int8 *failed) {
    __shared__ Tally tally;
    Flow flow{offsets, targets, weights, totals};
    Law law{start, numerator, denominator, cut, rounds};
    int32 *mine = lists + 3 * capacity * blockIdx.x;
    Scope scope{cells + capacity * blockIdx.x, capacity, mine, mine + capacity, mine + 2 * capacity,
                factors + capacity * blockIdx.x};
    while (true) {
        if (threadIdx.x == 0) tally.turn = int64(atomicAdd(next, 1ull));
        __syncthreads();
        int64 turn = tally.turn;
        if (turn >= group_count) return;
        int64 group = groups[turn];
        if (threadIdx.x == 0) {
            int32 origin = origins[group];
            bool fresh = false;
            tally.used = tally.receiving[0] = tally.full = tally.long_rows = 0;
            int64 place = scope.place_for(origin, &tally.used, fresh), total = totals[origin];
            int64 factor = rounds > 0 && total > 0 ? law.factor(start, total) : 0;
            scope.cells[place].sent = uint64(factor);
            scope.used[0] = int32(place);
            scope.senders[0] = origin;
            scope.factors[0] = factor;
            tally.used = 1;
            tally.sending[0] = factor > 0;
        }
        __syncthreads();
        for (int64 round = 0; round < rounds; ++round) {
            spread(flow, scope, tally, round);
            if (tally.full != 0) break;
            settle_received(flow, scope, tally, law, round);
            __syncthreads();
        }
        if (tally.full != 0) {
            if (threadIdx.x == 0) failed[turn] = 1;
        } else {
            for (int64 j = asked[group] + threadIdx.x; j < asked[group + 1]; j += blockDim.x) {
                int64 place = scope.place_of(nodes[j]);
                values[j] = place < 0 ? 0 : int64(scope.cells[place].summed);
            }
            for (int64 j = asked[group] + warp_of_block(); with_throughs && j < asked[group + 1]; j += warps_of_block()) {
                int32 through = through_of(flow, scope, nodes[j]);
                if (lane_of_warp() == 0) throughs[j] = through;
            }
        }
        __syncthreads();
        for (int64 i = threadIdx.x; i < tally.used; i += blockDim.x) scope.cells[scope.used[i]] = Cell{0, 0, 0, 0};
        __syncthreads();
    }
}
