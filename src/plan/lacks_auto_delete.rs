//! Plans exchanges that the broker stores without `auto_delete`, as an import does up to 4.2.
//!
//! Such an exchange routes messages and is never deleted automatically. The broker refuses every declare of it, with
//! either value (`rabbit_exchange:assert_equivalence`, 3.8 to 4.2). Only a recreate repairs it.

use super::builder::PlanBuilder;
use super::conflict::{alter, on_conflict};
use super::context::PlanContext;
use super::document::Options;
use super::verdict::broker_error;
use crate::diff::{Field, FieldChange};
use crate::model::{Object, ObjectId, OnConflict};

/// Recreates such an exchange if the spec or a flag allows it, and otherwise adds an info.
pub(super) fn plan(builder: &mut PlanBuilder, context: &PlanContext<'_>, options: &Options) {
    for name in context.lacks_auto_delete {
        let id = ObjectId::Exchange(name.clone());
        let (Some(before), Some(after)) = (context.current.object(&id), context.desired.topology.object(&id)) else {
            continue;
        };
        let address = context.address(&id);
        // A conflict about another field: its recreate repairs this one, too.
        if builder.changes.iter().any(|change| change.address == address && change.conflict.is_some()) {
            continue;
        }
        let Object::Exchange(_, exchange) = &after else { continue };
        let field = FieldChange { field: Field::AutoDelete, before: None, after: Some(exchange.auto_delete.into()) };
        if on_conflict(&context.desired.scope, options, &id, &address) == OnConflict::Refuse {
            let error = broker_error(&context.current.vhost, &after, &field, context.profile);
            let text = format!(
                "it was imported without auto_delete: it routes messages, but the broker refuses every declare of it \
                 ({error}); --recreate {address}=discard repairs it"
            );
            builder.info(&address, text);
        } else {
            alter(builder, context, options, (before, after), &[field]);
        }
    }
}
