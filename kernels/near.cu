// The nodes of greatest cosine among an index's links and the links of those (spec 2.3).
#include "best.cuh"
#include "score.cuh"

// What a block collects: a set of points, as a table of 2^k places (-1: empty), and of those that live the nodes.
struct Reach {
    int32 *points;
    int64 mask;
    int32 *nodes;
    double *cosines;
    const int32 *representatives;

    // Whether a point is new in the set. There must be room.
    __device__ bool adds(int32 point) const {
        // Fibonacci hashing: neighbours' numbers lie close together.
        int64 place = int64(uint32(point) * 2654435769u >> 8) & mask;
        while (true) {
            int32 found = *static_cast<volatile int32 *>(&points[place]);
            if (found < 0) found = atomicCAS(&points[place], -1, point);
            if (found < 0) return true;
            if (found == point) return false;
            place = (place + 1) & mask;
        }
    }
    __device__ void meet(int32 point, uint32 *held) const {
        if (adds(point) && representatives[point] >= 0) nodes[atomicAdd(held, 1u)] = representatives[point];
    }
};

// The `count` live nodes of greatest cosine within two links of a point, best first (ties: the lowest), into its row of
// `out`, where -1 stands at first. A block takes a point. reaches[point]: how many links there are within two, counted as
// often as they come; a block has `room` > reaches[point] places, 2^k >= 16, for nodes and cosines, twice as many for points.
extern "C" __global__ void nearest_linked(const int4 *rows, const double *lengths, int64 chunks, int64 lanes,
                                          const int32 *representatives, const int64 *offsets, const int32 *links,
                                          const int64 *reaches, int64 point_count, int64 count, int64 room,
                                          int32 *points, int32 *nodes, double *cosines, int32 *out) {
    __shared__ uint32 held;
    __shared__ Best of_warps[2][32];
    Images images{rows, chunks};
    Reach reach{points + 2 * room * blockIdx.x, 0, nodes + room * blockIdx.x, cosines + room * blockIdx.x,
                representatives};
    int64 warps = blockDim.x / WARP, my_warp = threadIdx.x / WARP;
    int64 groups = blockDim.x / lanes, group = threadIdx.x / lanes, lane = threadIdx.x % lanes;
    for (int64 point = blockIdx.x; point < point_count; point += gridDim.x) {
        int32 node = representatives[point];
        if (node < 0) continue;
        int64 places = WARP;
        while (places < 2 * (reaches[point] + 1)) places *= 2;
        reach.mask = places - 1;
        for (int64 place = threadIdx.x; place < places; place += blockDim.x) reach.points[place] = -1;
        __syncthreads();
        if (threadIdx.x == 0) {
            held = 0;
            reach.adds(int32(point));
        }
        __syncthreads();
        for (int64 i = offsets[point] + my_warp; i < offsets[point + 1]; i += warps) {
            int32 first = links[i];
            if (lane_of_warp() == 0) reach.meet(first, &held);
            for (int64 j = offsets[first] + lane_of_warp(); j < offsets[first + 1]; j += WARP) {
                reach.meet(links[j], &held);
            }
        }
        __syncthreads();
        int64 candidates = held;
        for (int64 base = 0; base < candidates; base += groups) {
            int64 i = base + group;
            bool given = i < candidates;
            int32 other = given ? reach.nodes[i] : node;
            int part = given ? dot_part(images.row(other), images.row(node), chunks, lane, lanes) : 0;
            int dot = sum_over_lanes(part, lanes);
            if (given && lane == 0) reach.cosines[i] = double(dot) / (lengths[node] * lengths[other]);
        }
        __syncthreads();
        Best last{0.0, -1};
        for (int64 rank = 0; rank < count && rank < candidates; ++rank) {
            Best best{0.0, -1};
            for (int64 i = threadIdx.x; i < candidates; i += blockDim.x) {
                double value = reach.cosines[i];
                int32 other = reach.nodes[i];
                bool later = last.number < 0 || value < last.value || (value == last.value && other > last.number);
                if (later) best.take(value, other);
            }
            last = best_of_block(best, of_warps[rank & 1]);
            if (last.number < 0) break;
            if (threadIdx.x == 0) out[point * count + rank] = last.number;
        }
        __syncthreads();
    }
}
