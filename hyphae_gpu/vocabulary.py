"""The fixed words of the system and the paper's constants, with the codes that columns and tables hold.

Codes are stored; never renumber them. Sources: spec 1.1, 2.1, 3.1, 4.2 and the HyphaeDB paper, Table 1.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class NodeType(IntEnum):
    """What a node is (spec 1.1)."""

    CELL = 0
    AGENT = 1
    SCENE = 2
    BEACON = 3


class EdgeType(IntEnum):
    """What an edge means (spec 2.1)."""

    SEMANTIC = 0
    CAUSAL = 1
    SUBSCRIPTION = 2
    PROMOTED = 3


class EdgeKind(IntEnum):
    """Where an edge comes from (spec 2.1)."""

    NONE = 0
    NEAR = 1
    FAR = 2
    ATTACH = 3
    COPY = 4
    ACCESS = 5
    DECLARED = 6


class DiffType(IntEnum):
    """What happened to the origin (spec 3.1)."""

    CREATED = 0
    UPDATED = 1
    SUPERSEDED = 2
    CONTRADICTION = 3
    PATTERN = 4
    PROMOTED = 5


class KnowledgeType(IntEnum):
    """Table 1's nine types of knowledge (spec 4.2)."""

    DECISION = 0
    CONSTRAINT = 1
    RISK = 2
    PATTERN = 3
    LESSON = 4
    FACT = 5
    PREFERENCE = 6
    CONTEXT = 7
    TASK = 8


#: mu(type) of spec 4.2, indexed by knowledge type.
ENERGY_MULTIPLIER: Final = (2.0, 2.0, 1.5, 1.5, 1.2, 1.0, 0.8, 0.5, 0.3)
#: E_base of spec 4.1.
ENERGY_BASE: Final = 10.0
#: Energies and costs are integers in this fraction of the paper's unit (spec 3.6).
ENERGY_UNITS: Final = 1024
#: Energies at or above this many paper units are refused (spec 3.6).
ENERGY_LIMIT: Final = 16_384.0
#: The cost of the weakest edge, in units (spec 3.6).
COST_LIMIT: Final = 1 << 24

#: Promotion (spec 5.1, 5.2): nodes of one scene, scenes, and the salience that it takes; the energy that it adds.
PROMOTION_NODES: Final = 5
PROMOTION_SCENES: Final = 3
PROMOTION_SALIENCE: Final = 0.8
PROMOTION_ENERGY: Final = 5.0
#: By the layer promoted to: the knowledge types that may be.
PROMOTED_TYPES: Final = {
    1: (KnowledgeType.DECISION, KnowledgeType.PATTERN, KnowledgeType.CONSTRAINT, KnowledgeType.LESSON),
    2: (KnowledgeType.DECISION, KnowledgeType.CONSTRAINT),
}

#: The kinds each edge type may have (spec 2.1), and the one it takes when none is given.
KINDS_OF_TYPE: Final = {
    EdgeType.SEMANTIC: (EdgeKind.NEAR, EdgeKind.FAR, EdgeKind.ATTACH, EdgeKind.COPY),
    EdgeType.CAUSAL: (EdgeKind.DECLARED, EdgeKind.ACCESS),
    EdgeType.SUBSCRIPTION: (EdgeKind.NONE,),
    EdgeType.PROMOTED: (EdgeKind.NONE,),
}


def names(words: type[IntEnum]) -> tuple[str, ...]:
    """Return the words as they appear in files, in the order of their codes."""
    return tuple(word.name.lower() for word in words)
