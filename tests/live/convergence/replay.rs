//! Executes the steps of a plan, wave by wave, on a model of a vhost that is independent of topo's own simulation.

use std::collections::BTreeSet;

use topo::model::{Binding, Destination, ExchangeName, ObjectId, Topology};
use topo::plan::{Action, Step};

fn ends(binding: &Binding) -> [ObjectId; 2] {
    let destination = match &binding.destination {
        Destination::Queue(name) => ObjectId::Queue(name.clone()),
        Destination::Exchange(name) => ObjectId::Exchange(name.clone()),
    };
    [ObjectId::Exchange(binding.source.clone()), destination]
}

fn exists(state: &Topology, id: &ObjectId) -> bool {
    match id {
        ObjectId::Vhost => state.settings.is_some(),
        ObjectId::Exchange(name) => name.is_predeclared() || state.exchanges.contains_key(name),
        ObjectId::Queue(name) => state.queues.contains_key(name),
        ObjectId::Policy(name) => state.policies.contains_key(name),
        ObjectId::Binding(binding) => state.bindings.contains(binding),
        ObjectId::Record(id) => state.records.contains_key(id),
    }
}

/// Removes bindings. Deletes an auto-delete exchange with its last binding, together with the bindings to it.
fn unbind(state: &mut Topology, gone: impl Fn(&Binding) -> bool) {
    let lost: BTreeSet<Binding> = state.bindings.iter().filter(|binding| gone(binding)).cloned().collect();
    state.bindings.retain(|binding| !lost.contains(binding));
    let sources: BTreeSet<ExchangeName> = lost.into_iter().map(|binding| binding.source).collect();
    for source in sources {
        let bare = !state.bindings.iter().any(|binding| binding.source == source);
        if bare && state.exchanges.get(&source).is_some_and(|exchange| exchange.auto_delete) {
            delete(state, &ObjectId::Exchange(source));
        }
    }
}

fn delete(state: &mut Topology, id: &ObjectId) {
    match id {
        ObjectId::Exchange(name) => drop(state.exchanges.remove(name)),
        ObjectId::Queue(name) => drop(state.queues.remove(name)),
        ObjectId::Policy(name) => drop(state.policies.remove(name)),
        ObjectId::Record(id) => drop(state.records.remove(id)),
        ObjectId::Vhost | ObjectId::Binding(_) => {}
    }
    unbind(state, |binding| ends(binding).contains(id));
}

/// Returns the objects that a step requires.
fn needs(action: &Action) -> Vec<ObjectId> {
    match action {
        Action::PutVhost { .. } => Vec::new(),
        Action::DeclareExchange { bindings, .. } => {
            let unmanaged = bindings.iter().flat_map(ends).filter(|end| *end != action.object());
            unmanaged.chain([ObjectId::Vhost]).collect()
        }
        Action::PutPolicy { .. } | Action::PutRecord { .. } | Action::DeclareQueue { .. } => vec![ObjectId::Vhost],
        Action::PutTopicPermission { .. } => vec![action.object()],
        Action::Bind { binding } => ends(binding).to_vec(),
        Action::Unbind { .. }
        | Action::DeleteQueue { .. }
        | Action::DeleteExchange { .. }
        | Action::DeletePolicy { .. }
        | Action::DeleteRecord { .. }
        | Action::MoveMessages { .. } => vec![action.object()],
    }
}

/// Returns the vhost after all steps, or the first step that requires a missing object in any order of its wave.
pub(super) fn replay(current: &Topology, steps: &[Step]) -> Result<Topology, String> {
    let mut state = current.clone();
    let mut done: BTreeSet<usize> = BTreeSet::new();
    for wave in steps.chunk_by(|one, other| one.wave == other.wave) {
        let start = state.clone();
        for step in wave {
            let wrong = |what: &str, id: &ObjectId| format!("step {} ({}): {id} {what}", step.id, step.address);
            for id in needs(&step.action) {
                // Checked twice: at the start of the wave, and after the steps that may run earlier in the wave.
                if !exists(&start, &id) {
                    return Err(wrong("does not exist", &id));
                }
                // A binding may have several properties keys, so a second unbind is valid.
                if !exists(&state, &id) && !matches!(step.action, Action::Unbind { .. }) {
                    return Err(wrong("is deleted in the same wave", &id));
                }
            }
            if let Some(after) = step.after.iter().find(|after| !done.contains(after)) {
                return Err(format!("step {} waits for step {after}, which is not done by then", step.id));
            }
            let object = step.action.object();
            match &step.action {
                Action::DeclareExchange { .. } | Action::DeclareQueue { .. } if exists(&state, &object) => {
                    return Err(wrong("exists already", &object));
                }
                Action::PutVhost { vhost } => state.settings = Some(vhost.clone()),
                Action::DeclareExchange { name, exchange, bindings } => {
                    state.exchanges.insert(name.clone(), exchange.clone());
                    state.bindings.extend(bindings.iter().cloned());
                }
                Action::PutPolicy { name, policy } => {
                    state.policies.insert(name.clone(), policy.clone());
                }
                Action::PutRecord { record, .. } => drop(state.records.insert(record.id.clone(), record.clone())),
                Action::DeclareQueue { name, queue } => {
                    state.queues.insert(name.clone(), queue.clone());
                }
                Action::Bind { binding } => {
                    state.bindings.insert(binding.clone());
                }
                Action::Unbind { binding, .. } => unbind(&mut state, |other| other == binding),
                Action::PutTopicPermission { .. } | Action::MoveMessages { .. } => {}
                Action::DeleteQueue { .. }
                | Action::DeleteExchange { .. }
                | Action::DeletePolicy { .. }
                | Action::DeleteRecord { .. } => {
                    delete(&mut state, &object);
                }
            }
        }
        done.extend(wave.iter().map(|step| step.id));
    }
    Ok(state)
}
