// The score of (diff, node): an exact integer dot product, then float64 in the order of spec 0.4 and 3.3.
#pragma once
#include "common.cuh"

// Rows of int8 images are padded with zeros to whole chunks of 16 bytes, and so aligned.
static_assert(sizeof(int4) == 16, "a chunk is read at once");

struct Images {
    const int4 *rows;
    int64 chunks;  // a row

    __device__ const int4 *row(int64 number) const { return rows + number * chunks; }
};

// The part that one of `lanes` lanes adds to the dot product of two rows. At most 16,000 products of 127 * 127 stay
// below 2^31. Row `a` comes from anywhere in memory, so several of its chunks are asked for before the first is used.
__device__ __forceinline__ int dot_part(const int4 *a, const int4 *b, int64 chunks, int64 lane, int64 lanes) {
    constexpr int IN_FLIGHT = 4;
    int sum = 0;
    for (int64 first = lane; first < chunks; first += IN_FLIGHT * lanes) {
        int4 left[IN_FLIGHT];
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i) {
            int64 chunk = first + i * lanes;
            left[i] = chunk < chunks ? __ldg(&a[chunk]) : make_int4(0, 0, 0, 0);
        }
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i) {
            int64 chunk = first + i * lanes;
            int4 right = chunk < chunks ? __ldg(&b[chunk]) : make_int4(0, 0, 0, 0);
            sum = __dp4a(left[i].x, right.x, sum);
            sum = __dp4a(left[i].y, right.y, sum);
            sum = __dp4a(left[i].z, right.z, sum);
            sum = __dp4a(left[i].w, right.w, sum);
        }
    }
    return sum;
}

struct Nodes {
    Images images;
    const double *lengths;
    const int32 *interest_rows;  // -1: none declared
    const float *interests;      // [m, 9]
};

struct Diffs {
    Images images;
    const double *lengths;
    const int8 *knowledge_types;
    const float *saliences;
};

inline constexpr int64 KNOWLEDGE_TYPES = 9;

// What a score needs of a node beside the dot product. It comes from anywhere in memory, so it is asked for before the
// node's row, that memory answers both at once, and used after it.
struct Terms {
    double length;
    int32 interest_row;

    __device__ static Terms of(const Nodes &nodes, int64 u) { return {nodes.lengths[u], nodes.interest_rows[u]}; }

    __device__ double cosine(int dot, const Diffs &diffs, int64 b) const {
        return double(dot) / (diffs.lengths[b] * length);
    }
    __device__ double score(double cosine, const Nodes &nodes, const Diffs &diffs, int64 b) const {
        int64 row = interest_row;
        double interest = row >= 0 ? widened(nodes.interests[row * KNOWLEDGE_TYPES + diffs.knowledge_types[b]]) : 0.0;
        return ((0.6 * cosine) + (0.3 * interest)) + (0.1 * widened(diffs.saliences[b]));
    }
};
