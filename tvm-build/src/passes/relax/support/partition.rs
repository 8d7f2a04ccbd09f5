//! Which bindings of a function are fused into one kernel (TVM's `GraphPartitioner`).
//!
//! Bindings are nodes; an edge goes from a binding to each that uses it. A node is fused along all paths to its
//! immediate post-dominator when every node on the way may take part.

use tvm_ir::relax::Pattern;

/// A node: a binding.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// How it takes part.
    pub(crate) pattern: Pattern,
    /// Whether it is seen from outside, so that its value must exist.
    pub(crate) external: bool,
    /// The nodes that use it (later ones), each with the pattern of the use.
    pub(crate) outputs: Vec<(usize, Pattern)>,
}

/// Limits of fusion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// 0: no fusion at all.
    pub(crate) opt_level: i64,
    /// The most nodes in a group.
    pub(crate) max_depth: usize,
}

/// The group of each node, named by one of its nodes; and the number of nodes of a group.
pub(crate) struct Groups {
    parent: Vec<usize>,
    pattern: Vec<Pattern>,
    size: Vec<usize>,
    anchored: Vec<bool>,
}

impl Groups {
    /// The group a node is in.
    pub(crate) fn root(&self, mut node: usize) -> usize {
        while self.parent[node] != node {
            node = self.parent[node];
        }
        node
    }

    /// The number of nodes of a node's group.
    pub(crate) fn size(&self, node: usize) -> usize {
        self.size[self.root(node)]
    }

    fn merge(&mut self, child: usize, into: usize) {
        let (child, into) = (self.root(child), self.root(into));
        if child == into {
            return;
        }
        self.size[into] += self.size[child];
        self.parent[child] = into;
        if self.anchored[child] {
            self.anchored[into] = true;
            self.pattern[into] = self.pattern[into].max(self.pattern[child]);
        }
    }
}

#[derive(Clone, Copy)]
struct Dominator {
    parent: Option<usize>,
    depth: usize,
    /// The strongest pattern on the way to the parent.
    pattern: Pattern,
}

/// Groups the nodes. They are in topological order.
pub(crate) fn partition(nodes: &[Node], limits: Limits) -> Groups {
    let groups = Groups {
        parent: (0..nodes.len()).collect(),
        pattern: nodes.iter().map(|n| n.pattern).collect(),
        size: vec![1; nodes.len()],
        anchored: nodes.iter().map(|n| n.pattern == Pattern::OutEWiseFusable).collect(),
    };
    let mut p =
        Partitioner { nodes, dominators: dominators(nodes), groups, limits, visited: vec![0; nodes.len()], visit: 0 };
    if limits.opt_level != 0 {
        for phase in 0..3 {
            p.run(phase);
        }
    }
    p.groups
}

fn dominators(nodes: &[Node]) -> Vec<Dominator> {
    let mut tree = vec![Dominator { parent: None, depth: 1, pattern: Pattern::Opaque }; nodes.len()];
    for i in (0..nodes.len()).rev() {
        if nodes[i].external {
            continue;
        }
        let mut pattern = Pattern::ElemWise;
        let mut parent = nodes[i].outputs.first().map(|o| o.0);
        for (n, (out, edge)) in nodes[i].outputs.iter().enumerate() {
            if n > 0 {
                parent = parent.and_then(|p| common_ancestor(&tree, p, *out, &mut pattern));
            }
            pattern = pattern.max(*edge);
        }
        tree[i] = Dominator { parent, depth: parent.map_or(1, |p| tree[p].depth + 1), pattern };
    }
    tree
}

fn common_ancestor(tree: &[Dominator], a: usize, b: usize, pattern: &mut Pattern) -> Option<usize> {
    let (mut a, mut b) = (a, b);
    while a != b {
        let (da, db) = (tree[a], tree[b]);
        if da.depth <= db.depth {
            *pattern = (*pattern).max(db.pattern);
        }
        if db.depth <= da.depth {
            *pattern = (*pattern).max(da.pattern);
        }
        let (next_a, next_b) = match da.depth.cmp(&db.depth) {
            std::cmp::Ordering::Less => (Some(a), db.parent),
            std::cmp::Ordering::Greater => (da.parent, Some(b)),
            std::cmp::Ordering::Equal => (da.parent, db.parent),
        };
        (a, b) = (next_a?, next_b?);
    }
    Some(a)
}

struct Partitioner<'a> {
    nodes: &'a [Node],
    dominators: Vec<Dominator>,
    groups: Groups,
    limits: Limits,
    /// The walk that last saw a node; walks are numbered.
    visited: Vec<u64>,
    visit: u64,
}

impl Partitioner<'_> {
    /// The nodes on all paths from `src` to `sink`, both left out.
    fn between(&mut self, src: usize, sink: usize) -> Vec<usize> {
        self.visit += 1;
        let mut stack: Vec<usize> = self.nodes[src].outputs.iter().map(|o| o.0).collect();
        let mut out = Vec::new();
        while let Some(n) = stack.pop() {
            if n == sink || std::mem::replace(&mut self.visited[n], self.visit) == self.visit {
                continue;
            }
            out.push(n);
            stack.extend(self.nodes[n].outputs.iter().map(|o| o.0));
        }
        out
    }

    fn run(&mut self, phase: u8) {
        use Pattern as P;
        for i in 0..self.nodes.len() {
            let pattern = self.groups.pattern[i];
            let Dominator { parent: Some(sink), pattern: to_sink, .. } = self.dominators[i] else { continue };
            if pattern == P::Opaque {
                continue;
            }
            let path = self.between(i, sink);
            // As upstream counts: what each node on the way was merged from, and the sink's whole group.
            let on_path: usize = path.iter().chain([&i]).map(|n| self.groups.size[*n]).sum();
            if on_path.saturating_add(self.groups.size(sink)) > self.limits.max_depth {
                continue;
            }
            let root = |p: &Self, n: usize| p.groups.pattern[p.groups.root(n)];
            let injective_path = |p: &Self| path.iter().chain([&sink]).all(|n| root(p, *n) <= P::Injective);
            let sink_pattern = self.groups.pattern[sink];
            let fuse = if phase == 2 {
                // Injective ops into a tuple that was itself fused into an injective op.
                pattern <= P::Injective
                    && root(self, sink) != P::Tuple
                    && sink_pattern == P::Tuple
                    && root(self, sink) <= P::Injective
                    && injective_path(self)
            } else if self.groups.root(i) == self.groups.root(sink) || sink_pattern == P::Tuple {
                false
            } else if pattern == P::OutEWiseFusable {
                phase == 0
                    && to_sink == P::ElemWise
                    && path.iter().chain([&sink]).all(|n| root(self, *n) <= P::Broadcast)
            } else if pattern <= P::Broadcast {
                (to_sink <= P::Injective || to_sink == P::CommReduce)
                    && path.iter().all(|n| root(self, *n) <= P::Injective)
                    && root(self, sink) <= P::OutEWiseFusable
            } else if pattern == P::Injective || pattern == P::Tuple {
                // After phase 0, so that heavy ops choose first.
                phase == 1 && injective_path(self)
            } else {
                false
            };
            if fuse {
                for n in std::iter::once(i).chain(path) {
                    self.groups.merge(n, sink);
                }
            }
        }
    }
}
