-- The store of one project, version 4 (spec 8.2). Run with the project's schema first in search_path.
-- The two `embedding` columns are added at the first ingest, when the dimension is known.

create table meta (
    key text primary key,
    value jsonb not null
);

create table knowledge_nodes (
    num bigint primary key,
    id text not null unique,
    type text not null check (type in ('cell', 'agent', 'scene', 'beacon')),
    layer smallint not null default 0 check (layer between 0 and 2),
    knowledge_type text check (knowledge_type in
        ('decision', 'constraint', 'risk', 'pattern', 'lesson', 'fact', 'preference', 'context', 'task')),
    salience real check (salience between 0 and 1),
    confidence real check (confidence between 0 and 1),
    agent bigint,                -- a cell's maker, a beacon's owner
    claim_subject text,
    claim_value text,
    stance real check (stance between -1 and 1),
    text text,
    supersedes bigint,
    superseded_by bigint,
    told_superseded bigint,      -- the superseded_by of which an epoch has told
    made_of bigint,              -- of a promoted node the cell it came from, of a pattern the one that led its group
    scene bigint,                -- of a live cell the scene it belongs to, of an agent or beacon the nearest
    interests jsonb,
    radius double precision,     -- a beacon's own
    trust real,                  -- an agent's
    sponsor bigint,              -- an agent's
    given bytea,                 -- SHA-256 of the position that the agent's or beacon's last row gave
    quarantined boolean not null default false,
    pending text check (pending in ('created', 'updated', 'silent', 'pattern')),   -- until an epoch has taken the node in
    created_at timestamptz not null,
    last_access timestamptz not null,
    payload jsonb
) with (toast_tuple_target = 256);

create table topology_edges (
    src bigint not null,
    tgt bigint not null check (tgt <> src),
    type text not null check (type in ('semantic', 'causal', 'subscription', 'promoted')),
    kind text check (kind in ('near', 'far', 'attach', 'copy', 'access', 'declared')),
    layer smallint not null,
    weight real not null check (weight > 0 and weight <= 1),
    bandwidth integer check (bandwidth >= 1),
    given boolean not null       -- true: from an ingested row; false: made by the last epoch
);
create unique index topology_edges_key on topology_edges (src, tgt, type, given);

create table memory_diffs (
    num bigint primary key,
    id text not null unique,
    origin bigint not null,
    seq integer not null,
    diff_type text not null check (diff_type in
        ('created', 'updated', 'superseded', 'contradiction', 'pattern', 'promoted')),
    knowledge_type text not null,
    salience real not null,
    energy real not null,
    units integer not null,      -- E0 in 1/1024 (spec 3.6)
    max_hops integer not null,
    ttl integer not null,        -- epochs left; 0 = over
    epoch_created integer not null,
    unique (origin, seq)
) with (toast_tuple_target = 256);
create index memory_diffs_live on memory_diffs (num) where ttl > 0;

create table accesses (
    agent bigint not null,
    cell bigint not null,
    at timestamptz not null,
    primary key (agent, cell, at)
);

create table inbox (
    agent bigint not null,
    diff bigint not null,
    via text not null,           -- 'gossip' or the beacon's id
    epoch integer not null,
    hop integer not null,
    energy real not null,
    score double precision not null,
    resonance bigint not null,
    relevance double precision,  -- null through a beacon
    parent bigint,
    place integer not null,      -- from 0 within (agent, via, epoch)
    through bigint,              -- the neighbour from which most of the resonance came
    path bigint[] not null,      -- from the receiver back to the origin
    primary key (agent, diff, via)
);

create table contradictions (
    a bigint not null,
    b bigint not null check (a <> b),
    similarity double precision not null,
    reason text not null,
    epoch integer not null,
    status text not null check (status in ('open', 'resolved')),
    resolution jsonb
);
create unique index contradictions_pair on contradictions (least(a, b), greatest(a, b));

create table promotions (
    diff bigint not null,
    layer smallint not null check (layer in (1, 2)),   -- the layer promoted to
    epoch integer not null,
    scenes bigint[] not null,    -- those that counted, with most counted nodes first
    node bigint not null,        -- the node that was made
    counts bigint[] not null,    -- counted nodes of each scene
    carrier bigint not null,     -- the node whose energy went up
    entry bigint,                -- the node of that layer where it went on
    carried bigint[] not null,   -- the counted nodes of the first scene, or the scenes' own; greatest energy first
    primary key (diff, layer)
);

-- Scenes (spec 6.4). A scene's number and id are those of its own node; knowledge_nodes.scene holds the numbers.
create table scenes (
    num bigint primary key,
    id text not null unique,
    name text not null,          -- a few telling words of its cells' texts; may be empty
    size integer not null,       -- cells
    epoch integer not null,      -- the first that had it
    ended integer                -- the first that had it no more
);

create table epochs (
    epoch integer primary key,
    started_at timestamptz not null,
    as_of timestamptz not null,
    seconds jsonb not null,
    counts jsonb not null,
    state_hash text not null
);

-- One HNSW index a layer as plain arrays (spec 2.2), cut into chunks so that only changed ones are written.
create table index_heads (
    layer smallint primary key,
    points bigint not null,
    dimension integer not null,
    links bigint not null,
    entry_point bigint not null,
    max_level integer not null
);
create table index_chunks (
    layer smallint not null,
    part text not null check (part in ('founders', 'vectors', 'levels', 'links')),
    chunk integer not null,
    digest bytea not null,
    data bytea not null,
    primary key (layer, part, chunk)
);
alter table index_chunks alter column data set storage external;

-- The arrays of the embedder that was fitted at the first ingest; little-endian, C order.
create table embedder_arrays (
    name text not null,
    part integer not null,
    dtype text not null,
    shape bigint[] not null,
    data bytea not null,
    primary key (name, part)
);
alter table embedder_arrays alter column data set storage external;

create view inbox_view as
    select a.id as agent, d.id as diff, o.id as origin, d.diff_type, d.knowledge_type, o.text, i.via, i.epoch, i.place,
        i.hop, i.energy, i.score, i.resonance, i.relevance, p.id as parent
    from inbox i
    join knowledge_nodes a on a.num = i.agent
    join memory_diffs d on d.num = i.diff
    join knowledge_nodes o on o.num = d.origin
    left join knowledge_nodes p on p.num = i.parent;

create view contradictions_view as
    select a.id as a, b.id as b, c.similarity, c.reason, c.epoch, c.status, c.resolution, a.text as a_text,
        b.text as b_text, a.claim_subject as a_subject, a.claim_value as a_value, b.claim_subject as b_subject,
        b.claim_value as b_value, a.stance as a_stance, b.stance as b_stance
    from contradictions c
    join knowledge_nodes a on a.num = c.a
    join knowledge_nodes b on b.num = c.b;
