// The closest member of lower rank, by exact search (spec 2.6).
#include "best.cuh"
#include "score.cuh"

// For each seeking row and each slice of `slice_rows` of the `count` rows: the row of lower rank of greatest cosine
// (ties: the lowest) and that cosine, at [slice, seeker] of partners and cosines; -1 where there is none. A warp takes
// such a pair, neighbouring warps one slice, so that its rows are near.
extern "C" __global__ void closest(const int4 *rows, const double *lengths, int64 chunks, int64 lanes,
                                   const int32 *ranks, int64 count, const int64 *seeking, int64 seekers,
                                   int64 slice_rows, int32 *partners, double *cosines) {
    Images images{rows, chunks};
    int64 groups = WARP / lanes, group = lane_of_warp() / lanes, lane = lane_of_warp() % lanes;
    int64 slices = (count + slice_rows - 1) / slice_rows;
    for (int64 task = first_warp(); task < slices * seekers; task += all_warps()) {
        int64 seeker = seeking[task % seekers], first = task / seekers * slice_rows;
        int64 end = first + slice_rows < count ? first + slice_rows : count;
        Best best{0.0, -1};
        for (int64 base = first; base < end; base += groups) {
            int64 i = base + group;
            bool offered = i < end && ranks[i] < ranks[seeker];
            int part = offered ? dot_part(images.row(i), images.row(seeker), chunks, lane, lanes) : 0;
            int dot = sum_over_lanes(part, lanes);
            if (offered) best.take(double(dot) / (lengths[seeker] * lengths[i]), int32(i));
        }
        best = best_of_warp(best);
        if (lane_of_warp() == 0) {
            partners[task] = best.number;
            cosines[task] = best.value;
        }
    }
}
