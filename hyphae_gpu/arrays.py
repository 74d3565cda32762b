"""Short names for the numpy columns that stages exchange, by dtype."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
