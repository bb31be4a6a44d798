//! LINE_COSTS, ADDRESS_COSTS and ARCS.

use treering_profile::{
    AddressCost, Arc, FunctionId, LineCost, LineId, MetricId, NodeId, StatedAddress, ThreadId,
};

use crate::trg::Damage;
use crate::trg::varint::{Decoder, Encoder, narrow};

pub(crate) fn encode_line_costs(to: &mut Encoder, costs: &[LineCost]) {
    to.number(costs.len() as u64);
    to.delta_column(costs.iter().map(|cost| cost.node.raw().into()));
    to.delta_column(costs.iter().map(|cost| cost.line.raw().into()));
    to.column(costs.iter().map(|cost| cost.metric.raw().into()));
    to.column(costs.iter().map(|cost| cost.cost));
}

pub(crate) fn decode_line_costs(from: &mut Decoder<'_>) -> Result<Vec<LineCost>, Damage> {
    let count = from.count()?;
    from.rows::<LineCost>(count)?;
    let nodes = from.delta_column(count)?;
    let lines = from.delta_column(count)?;
    let metrics = from.column(count, narrow)?;
    let costs = from.column(count, Ok)?;
    let cost = |at: usize| {
        Ok(LineCost {
            node: NodeId::new(narrow(nodes[at])?),
            line: LineId::new(narrow(lines[at])?),
            metric: MetricId::new(metrics[at]),
            cost: costs[at],
        })
    };
    (0..count).map(cost).collect()
}

pub(crate) fn encode_address_costs(to: &mut Encoder, costs: &[AddressCost]) {
    to.number(costs.len() as u64);
    to.delta_column(costs.iter().map(|cost| cost.thread.raw().into()));
    to.delta_column(costs.iter().map(|cost| cost.function.raw().into()));
    to.delta_column(costs.iter().map(|cost| cost.holder.raw().into()));
    to.delta_column(costs.iter().map(|cost| cost.address.0));
    to.delta_column(costs.iter().map(|cost| cost.line.map_or(0, |line| u64::from(line.raw()) + 1)));
    to.column(costs.iter().map(|cost| cost.metric.raw().into()));
    to.column(costs.iter().map(|cost| cost.cost));
}

pub(crate) fn decode_address_costs(from: &mut Decoder<'_>) -> Result<Vec<AddressCost>, Damage> {
    let count = from.count()?;
    let threads = from.delta_column(count)?;
    let functions = from.delta_column(count)?;
    let holders = from.delta_column(count)?;
    let addresses = from.delta_column(count)?;
    let lines = from.delta_column(count)?;
    let metrics = from.column(count, narrow)?;
    let costs = from.column(count, Ok)?;
    let cost = |at: usize| {
        Ok(AddressCost {
            thread: ThreadId::new(narrow(threads[at])?),
            function: FunctionId::new(narrow(functions[at])?),
            holder: FunctionId::new(narrow(holders[at])?),
            address: StatedAddress(addresses[at]),
            line: lines[at].checked_sub(1).map(narrow).transpose()?.map(LineId::new),
            metric: MetricId::new(metrics[at]),
            cost: costs[at],
        })
    };
    (0..count).map(cost).collect()
}

pub(crate) fn encode_arcs(to: &mut Encoder, arcs: &[Arc]) {
    to.number(arcs.len() as u64);
    to.delta_column(arcs.iter().map(|arc| arc.caller.raw().into()));
    to.delta_column(arcs.iter().map(|arc| arc.callee.raw().into()));
    to.column(arcs.iter().map(|arc| arc.call_site.map_or(0, |line| u64::from(line.raw()) + 1)));
    to.column(arcs.iter().map(|arc| arc.calls));
    to.column(arcs.iter().map(|arc| arc.total_costs.len() as u64));
    let costs = || arcs.iter().flat_map(|arc| &arc.total_costs);
    to.column(costs().map(|(metric, _)| metric.raw().into()));
    to.column(costs().map(|(_, cost)| *cost));
}

pub(crate) fn decode_arcs(from: &mut Decoder<'_>) -> Result<Vec<Arc>, Damage> {
    let count = from.count()?;
    from.rows::<Arc>(count)?;
    let callers = from.delta_column(count)?;
    let callees = from.delta_column(count)?;
    let call_sites = from.column(count, Ok)?;
    let calls = from.column(count, Ok)?;
    let widths = from.column(count, narrow)?;
    let costs: u64 = widths.iter().map(|&width| u64::from(width)).sum();
    let costs = usize::try_from(costs).map_err(|_| Damage::Content("arcs have too many costs"))?;
    widths.iter().try_for_each(|&width| from.boxed(width as usize * size_of::<(MetricId, u64)>()))?;
    let metrics = from.column(costs, |metric| narrow(metric).map(MetricId::new))?;
    let costs = from.column(costs, Ok)?;
    let mut costs = metrics.into_iter().zip(costs);
    let arc = |at: usize| {
        Ok(Arc {
            caller: FunctionId::new(narrow(callers[at])?),
            callee: FunctionId::new(narrow(callees[at])?),
            call_site: call_sites[at].checked_sub(1).map(narrow).transpose()?.map(LineId::new),
            calls: calls[at],
            total_costs: costs.by_ref().take(widths[at] as usize).collect(),
        })
    };
    (0..count).map(arc).collect()
}
