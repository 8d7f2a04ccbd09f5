//! Names and order: every name defined once, every use after its definition.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use tvm_ir::span::Span;

use super::graph::{Graph, Node};
use super::places::Places;

/// Names shown of a cycle.
const SHOWN: usize = 8;

/// Reports values that are defined twice. `given` are names with the words for what defines them.
pub(super) fn check_definitions<'a>(
    given: impl Iterator<Item = (&'a str, &'a str)>,
    nodes: &'a [Node],
    place: &str,
    places: &mut Places,
) {
    let mut producers: BTreeMap<&str, String> = BTreeMap::new();
    let produced = nodes.iter().flat_map(|n| n.outputs.iter().map(move |o| (o.as_str(), n.path.as_str())));
    for (name, by) in given.chain(produced).filter(|(name, _)| !name.is_empty()) {
        match producers.get(name) {
            None => {
                producers.insert(name, by.to_owned());
            }
            Some(first) => places.fail(place, format!("value '{name}' has two producers: {first}, and {by}")),
        }
    }
}

/// Puts `nodes` into topological order. They keep their order if it is one; otherwise the first node that can
/// run comes first. A cycle is reported and leaves the order as it is.
pub(super) fn sort(nodes: &mut Vec<Node>, places: &mut Places) {
    let mut producer: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for output in node.outputs.iter().filter(|o| !o.is_empty()) {
            producer.entry(output).or_insert(i);
        }
    }
    let wants: Vec<BTreeSet<usize>> =
        nodes.iter().map(|n| n.needs().filter_map(|name| producer.get(name).copied()).collect()).collect();
    if wants.iter().enumerate().all(|(i, w)| w.iter().all(|&j| j < i)) {
        return;
    }
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (i, wanted) in wants.iter().enumerate() {
        for &j in wanted {
            users[j].push(i);
        }
    }
    let mut missing: Vec<usize> = wants.iter().map(BTreeSet::len).collect();
    let mut ready: BinaryHeap<Reverse<usize>> =
        missing.iter().enumerate().filter(|(_, m)| **m == 0).map(|(i, _)| Reverse(i)).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(i)) = ready.pop() {
        order.push(i);
        for &user in &users[i] {
            missing[user] -= 1;
            if missing[user] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    if order.len() < nodes.len() {
        let (span, message) = cycle(nodes, &wants, &missing, &producer);
        places.fail_at(span, message);
        return;
    }
    let mut taken: Vec<Option<Node>> = std::mem::take(nodes).into_iter().map(Some).collect();
    nodes.extend(order.into_iter().filter_map(|i| taken[i].take()));
}

/// A place on a cycle and a message that names its values: from a node that cannot run, always to an input that cannot be computed.
fn cycle(
    nodes: &[Node],
    wants: &[BTreeSet<usize>],
    missing: &[usize],
    producer: &BTreeMap<&str, usize>,
) -> (Span, String) {
    let stuck = |i: usize| missing[i] > 0;
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    let mut path: Vec<usize> = Vec::new();
    let mut next = (0..nodes.len()).find(|&i| stuck(i));
    while let Some(i) = next {
        if let Some(&start) = seen.get(&i) {
            path.drain(..start);
            break;
        }
        seen.insert(i, path.len());
        path.push(i);
        next = wants[i].iter().copied().find(|&j| stuck(j));
    }
    // The values of the cycle: what each node of it reads of the next one.
    let mut names: Vec<&str> = Vec::new();
    for (k, &i) in path.iter().enumerate() {
        let from = path[(k + 1) % path.len()];
        names.extend(nodes[i].needs().find(|name| producer.get(name) == Some(&from)));
    }
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("'{n}'")).collect();
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    let message = format!("the graph is not topologically sorted and has a cycle through {}{more}", shown.join(", "));
    (path.first().map_or(Span::NONE, |&i| nodes[i].span), message)
}

/// The names that `nodes` and `outputs` use and nothing in the graph defines. `given` are its inputs and
/// initializers.
pub(super) fn captures<'a>(
    given: impl Iterator<Item = &'a str>,
    nodes: &'a [Node],
    outputs: impl Iterator<Item = &'a str>,
) -> BTreeSet<String> {
    let mut defined: BTreeSet<&str> = given.collect();
    defined.extend(nodes.iter().flat_map(|n| &n.outputs).map(String::as_str));
    let used = nodes.iter().flat_map(Node::needs).chain(outputs);
    used.filter(|name| !defined.contains(name)).map(str::to_owned).collect()
}

/// Reports each use of a name in `undefined`, at the node that uses it.
pub(super) fn report_undefined(
    nodes: &[Node],
    outputs: &[&str],
    place: &str,
    undefined: &BTreeSet<String>,
    places: &mut Places,
) {
    for node in nodes {
        for (i, input) in node.inputs.iter().enumerate().filter(|(_, input)| undefined.contains(*input)) {
            places.fail_at(node.span, format!("input {i} is '{input}', which nothing defines"));
        }
        for attribute in &node.attributes {
            for graph in attribute.value.graphs() {
                let inner: BTreeSet<String> = graph.captures.intersection(undefined).cloned().collect();
                let outputs: Vec<&str> = graph.outputs.iter().map(|o| o.name.as_str()).collect();
                let place = format!("{}/{}", node.path, attribute.name);
                report_undefined(&graph.nodes, &outputs, &place, &inner, places);
            }
        }
    }
    for output in outputs.iter().filter(|name| undefined.contains(**name)) {
        places.fail(place, format!("output '{output}' is defined by no node, input or initializer"));
    }
}

/// The names that a graph defines without a node, with the words for what defines each: its inputs, and those
/// of its initializers that no input names.
pub(super) fn given(graph: &Graph) -> impl Iterator<Item = (&str, &str)> {
    let inputs: BTreeSet<&str> = graph.inputs.iter().map(|i| i.name.as_str()).collect();
    let initializers = graph.initializers.iter().map(|(name, _)| name.as_str());
    let own = initializers.filter(move |name| !inputs.contains(name)).map(|name| (name, "an initializer"));
    graph.inputs.iter().map(|i| (i.name.as_str(), "an input of the graph")).chain(own)
}
