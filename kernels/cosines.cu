// Cosines of given pairs of nodes (spec 0.4).
#include "score.cuh"

// The cosine of each of `count` pairs of rows; `lanes` lanes, 2^k of at most 32, work on one pair.
extern "C" __global__ void cosines(const int4 *rows, const double *lengths, int64 chunks, int64 lanes,
                                   const int32 *left, const int32 *right, int64 count, double *out) {
    Images images{rows, chunks};
    int64 pairs = WARP / lanes, lane = lane_of_warp() % lanes;
    for (int64 warp = first_warp(); warp * pairs < count; warp += all_warps()) {
        int64 i = warp * pairs + lane_of_warp() / lanes;
        bool given = i < count;
        int64 a = given ? left[i] : 0, b = given ? right[i] : 0;
        int dot = sum_over_lanes(given ? dot_part(images.row(b), images.row(a), chunks, lane, lanes) : 0, lanes);
        if (given && lane == 0) out[i] = double(dot) / (lengths[a] * lengths[b]);
    }
}
