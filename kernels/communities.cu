// Local moving by modularity, on integers, in synchronous sub-steps, and the parts that communities fall into (spec 6.4).
#include "best.cuh"
#include "components.cuh"

// A level's links by node, symmetric; totals: the sum of a node's weights. Community c has sums[c], its members' totals.
struct Level {
    const int64 *offsets;
    const int32 *targets;
    const int64 *weights, *totals;
    const int32 *community;
    const int64 *sums;
    double den_two_m;
    int64 numerator;
};

// Steele 2014: the first output from a state.
__device__ __forceinline__ uint64 splitmix64(uint64 state) {
    uint64 z = state + 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

__device__ __forceinline__ bool moves_in(int64 step, int64 iteration, int64 number) {
    return int64(splitmix64(1000003ull * uint64(number) + uint64(iteration)) % 4) == step;
}

// The threads that work on one node: a warp, or a block.
struct Warp {
    __device__ int64 rank() const { return lane_of_warp(); }
    __device__ int64 size() const { return WARP; }
    __device__ void meet() const { __syncwarp(); }
    __device__ int64 sum(int64 value) const { return sum_over_lanes(value, WARP); }
    __device__ Best best(Best choice) const { return best_of_warp(choice); }
};

struct Block {
    int64 *sums;       // shared memory, one a warp
    Best *choices;

    __device__ int64 rank() const { return threadIdx.x; }
    __device__ int64 size() const { return blockDim.x; }
    __device__ void meet() const { __syncthreads(); }
    __device__ int64 sum(int64 value) const {
        value = sum_over_lanes(value, WARP);
        if (lane_of_warp() == 0) sums[threadIdx.x / WARP] = value;
        __syncthreads();
        value = 0;
        for (unsigned warp = 0; warp < blockDim.x / WARP; ++warp) value += sums[warp];
        return value;
    }
    __device__ Best best(Best choice) const { return best_of_block(choice, choices); }
};

// An open-addressing table of a node's neighbouring communities: key -1 and no weight in an empty place.
struct Neighbours {
    int32 *keys;
    uint64 *linked;

    __device__ void clear(int64 place) const {
        keys[place] = -1;
        linked[place] = 0;
    }
    __device__ void add(int32 community, int64 weight, int64 mask) const {
        int64 place = community & mask;
        while (true) {
            int32 key = *static_cast<volatile int32 *>(&keys[place]);
            if (key < 0) key = atomicCAS(&keys[place], -1, community);
            if (key < 0 || key == community) break;
            place = (place + 1) & mask;
        }
        atomicAdd(&linked[place], uint64(weight));
    }
};

// Places in the least table; each row's has at least twice as many as the row has links.
constexpr int64 LEAST_TABLE = 32;
// Longer rows are a block's work; hyphae_gpu/backends/cuda/communities.py has the same number.
constexpr int64 LONGEST_OF_WARP = 128;
constexpr int64 ROOM_OF_WARP = 2 * LONGEST_OF_WARP;

// The community of greatest gain among a node's neighbours' (ties: the lowest), its own where none beats staying. The
// table is left empty.
template <class Team>
__device__ void choose(const Team &team, const Level &level, const Neighbours &table, int64 node, int32 *chosen) {
    int32 own = level.community[node];
    int64 first = level.offsets[node], last = level.offsets[node + 1], places = LEAST_TABLE, linked_own = 0;
    while (places < 2 * (last - first)) places *= 2;
    for (int64 k = first + team.rank(); k < last; k += team.size()) {
        int32 other = level.targets[k], community = level.community[other];
        if (community != own) {
            table.add(community, level.weights[k], places - 1);
        } else if (other != node) {
            linked_own += level.weights[k];
        }
    }
    linked_own = team.sum(linked_own);
    team.meet();
    int64 total = level.totals[node];
    double penalty = double(level.numerator * total);
    double stay = level.den_two_m * double(linked_own) - penalty * double(level.sums[own] - total);
    Best choice{stay, -1};  // -1: nothing is better than staying
    for (int64 place = team.rank(); place < places; place += team.size()) {
        int32 community = table.keys[place];
        if (community < 0) continue;
        double gain =
            level.den_two_m * double(int64(table.linked[place])) - penalty * double(level.sums[community]);
        if (gain > stay) choice.take(gain, community);
        table.clear(place);
    }
    choice = team.best(choice);
    if (team.rank() == 0) chosen[node] = choice.number < 0 ? own : choice.number;
    team.meet();
}

// What each node of this sub-step moves to, rows of at most LONGEST_OF_WARP links: a warp a node. Shared memory:
// ROOM_OF_WARP * 12 bytes a warp.
extern "C" __global__ void communities(const int64 *offsets, const int32 *targets, const int64 *weights,
                                       const int64 *totals, const int32 *community, const int64 *sums,
                                       double den_two_m, int64 numerator, const int64 *numbers, int64 count,
                                       int64 iteration, int64 step, int32 *chosen) {
    DYNAMIC_SHARED(uint64, memory);
    int64 warp = threadIdx.x / WARP, room = blockDim.x / WARP * ROOM_OF_WARP;
    Neighbours table{reinterpret_cast<int32 *>(memory + room) + warp * ROOM_OF_WARP, memory + warp * ROOM_OF_WARP};
    for (int64 place = lane_of_warp(); place < ROOM_OF_WARP; place += WARP) table.clear(place);
    __syncwarp();
    Level level{offsets, targets, weights, totals, community, sums, den_two_m, numerator};
    for (int64 node = first_warp(); node < count; node += all_warps()) {
        if (offsets[node + 1] - offsets[node] > LONGEST_OF_WARP || !moves_in(step, iteration, numbers[node])) continue;
        choose(Warp{}, level, table, node, chosen);
    }
}

// The same for the nodes in `rows`, a block each. A block has `room` places of keys (-1) and of linked (0).
extern "C" __global__ void choose_long(const int64 *offsets, const int32 *targets, const int64 *weights,
                                       const int64 *totals, const int32 *community, const int64 *sums,
                                       double den_two_m, int64 numerator, const int64 *numbers, const int64 *rows,
                                       int64 count, int64 iteration, int64 step, int32 *keys, uint64 *linked,
                                       int64 room, int32 *chosen) {
    __shared__ int64 sums_of_warps[32];
    __shared__ Best choices_of_warps[32];
    Block block{sums_of_warps, choices_of_warps};
    Neighbours table{keys + room * blockIdx.x, linked + room * blockIdx.x};
    Level level{offsets, targets, weights, totals, community, sums, den_two_m, numerator};
    for (int64 i = blockIdx.x; i < count; i += gridDim.x) {
        if (moves_in(step, iteration, numbers[rows[i]])) choose(block, level, table, rows[i], chosen);
    }
}

// All nodes of this sub-step move at once; moves[0] counts those that went elsewhere.
extern "C" __global__ void apply_moves(const int64 *totals, const int64 *numbers, int64 count, int64 iteration,
                                       int64 step, const int32 *chosen, int32 *community, uint64 *sums,
                                       uint64 *moves) {
    uint64 moved = 0;
    for (int64 node = first_item(); node < count; node += all_threads()) {
        if (!moves_in(step, iteration, numbers[node]) || chosen[node] == community[node]) continue;
        atomicAdd(&sums[community[node]], uint64(-totals[node]));
        atomicAdd(&sums[chosen[node]], uint64(totals[node]));
        community[node] = chosen[node];
        ++moved;
    }
    if (moved > 0) atomicAdd(moves, moved);
}

// Join the ends of the links within communities; parents as in components.cuh. A warp a row.
extern "C" __global__ void split(const int64 *offsets, const int32 *targets, const int32 *community, int64 count,
                                 int32 *parents) {
    for (int64 node = first_warp(); node < count; node += all_warps()) {
        for (int64 k = offsets[node] + lane_of_warp(); k < offsets[node + 1]; k += WARP) {
            int32 other = targets[k];
            if (other < node && community[other] == community[node]) join(parents, int32(node), other);
        }
    }
}
