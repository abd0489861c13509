//! Rights: tags for parts of the management API, and permissions for objects.

use serde_json::{Value, json};

use super::{Reply, Stage, since};
use crate::support::{Node, User};

fn put(stage: &Stage, user: &User<'_>, kind: &str, name: &str, body: &Value) -> Reply {
    stage.reply(user.http().put(&stage.path(kind, &[name]), body))
}

/// Used by `broker::read` for all reads of a plan.
#[test]
fn tag_management_reads_all_lists_of_a_vhost() {
    let stage = Stage::new("reader");
    let user = Node::shared().user("management").may(&stage.vhost, "", "", "");
    for kind in ["queues", "exchanges", "bindings", "policies", "operator-policies", "consumers", "vhost-limits"] {
        assert!(user.http().get(&stage.path(kind, &[])).expect_status(200).is_array(), "{kind}");
    }
    user.http().get("/api/overview").expect_status(200);
    user.http().get("/api/vhosts").expect_status(200);
}

/// Used by `broker::read`, which never reads `/api/definitions`.
#[test]
fn definitions_require_an_administrator() {
    let stage = Stage::new("definitions");
    for tags in ["management", "policymaker", "monitoring"] {
        let user = Node::shared().user(tags).may_everything(&stage.vhost);
        stage.reply(user.http().get(&stage.path("definitions", &[]))).expect(401, "Not administrator user");
    }
}

/// Used by `BrokerError::WrongTag`.
#[test]
fn user_without_a_tag_is_not_a_management_user() {
    let stage = Stage::new("tagless");
    let user = Node::shared().user("").may_everything(&stage.vhost);
    let reply = stage.reply(user.http().get(&stage.path("queues", &[])));
    assert_eq!(reply.body["error"], "not_authorised");
    reply.expect(401, "Not management user");
}

/// Used by `BrokerError::WrongTag`: users with any tag can read policies, users with one of two tags can write them.
#[test]
fn policies_are_written_by_policymakers_and_administrators() {
    let stage = Stage::new("policies");
    let policy = json!({"pattern": "x", "definition": {"max-length": 1}});
    let plain = Node::shared().user("management").may_everything(&stage.vhost);
    let maker = Node::shared().user("policymaker").may_everything(&stage.vhost);
    put(&stage, &plain, "policies", "p", &policy).expect(401, "User not authorised to access object");
    put(&stage, &maker, "policies", "p", &policy).expect_created();
    let path = stage.path("policies", &["p"]);
    stage.reply(plain.http().delete(&path)).expect(401, "User not authorised to access object");
    stage.reply(maker.http().delete(&path)).expect_no_content();
    put(&stage, &maker, "operator-policies", "p", &policy).expect(401, "Not administrator user");
    stage.reply(maker.http().put("/api/vhosts/not-made", &json!({}))).expect(401, "Not administrator user");
}

/// Used by `BrokerError::AccessRefused`: the status is 401 instead of 403.
#[test]
fn missing_permission_is_401() {
    let stage = Stage::new("permission");
    stage.queue("q", "classic", json!({})).expect_created();
    let reader = Node::shared().user("management").may(&stage.vhost, "", "", ".*");
    let queue = json!({"durable": true});
    let refused = |reply: Reply| {
        assert_eq!(reply.body["error"], "not_authorised");
        reply.expect(401, "Access refused.");
    };
    refused(put(&stage, &reader, "queues", "new", &queue));
    refused(put(&stage, &reader, "queues", "q", &queue));
    refused(put(&stage, &reader, "exchanges", "e", &json!({"type": "topic", "durable": true})));
    refused(stage.reply(reader.http().delete(&stage.path("queues", &["q"]))));
    let binding = stage.path("bindings", &["e", "amq.topic", "q", "q"]);
    refused(stage.reply(reader.http().post(&binding, &json!({"routing_key": "k"}))));
}

/// Used by `cli`: the explanation of a refusal contains the missing permission.
#[test]
fn binding_requires_write_on_its_destination_and_read_on_its_source() {
    let stage = Stage::new("bind");
    stage.queue("q", "classic", json!({})).expect_created();
    let binding = stage.path("bindings", &["e", "amq.topic", "q", "q"]);
    let body = json!({"routing_key": "k"});
    for (write, read, status) in [("^q$", "^amq.topic$", 201), ("^q$", "", 401), ("", "^amq.topic$", 401)] {
        let user = Node::shared().user("management").may(&stage.vhost, "", write, read);
        assert_eq!(user.http().post(&binding, &body).status, status, "write {write}, read {read}");
        let deleted = user.http().delete(&format!("{binding}/k")).status;
        assert_eq!(deleted, if status == 201 { 204 } else { 404 }, "existence is checked before permissions");
    }
}

/// Used by `cli`: the explanation of a refusal contains the missing permissions for the references of a queue or an
/// exchange.
#[test]
fn dead_letter_exchange_requires_read_on_the_queue_and_write_on_the_exchange() {
    let stage = Stage::new("refer");
    let queue = json!({"durable": true, "arguments": {"x-dead-letter-exchange": "amq.fanout"}});
    let exchange = json!({"type": "topic", "durable": true, "arguments": {"alternate-exchange": "amq.fanout"}});
    for (write, read, status) in [("^amq.fanout$", "^mine$", 201), ("", "^mine$", 401), ("^amq.fanout$", "", 401)] {
        let user = Node::shared().user("management").may(&stage.vhost, "^mine$", write, read);
        for (kind, body) in [("queues", &queue), ("exchanges", &exchange)] {
            assert_eq!(put(&stage, &user, kind, "mine", body).status, status, "{kind}: write {write}, read {read}");
            stage.http.delete(&stage.path(kind, &["mine"]));
        }
    }
}

/// Used by `broker::answer`: permissions apply to administrators, too.
#[test]
fn administrator_without_permissions_reads_but_does_not_write() {
    let stage = Stage::new("administrator");
    let user = Node::shared().user("administrator");
    user.http().get(&stage.path("queues", &[])).expect_status(200);
    put(&stage, &user, "queues", "q", &json!({"durable": true})).expect(401, "Access refused.");
}

/// Used by `broker::read`: from 4.2.9 and 4.3.3 on, the response equals the response for a missing vhost.
#[test]
fn inaccessible_vhost_is_401_and_later_404() {
    let stage = Stage::new("others");
    let user = Node::shared().user("management");
    let listed = stage.reply(user.http().get(&stage.path("queues", &[])));
    let written = put(&stage, &user, "queues", "q", &json!({"durable": true}));
    for reply in [listed, written] {
        if since(4, 3) {
            assert_eq!(reply.body["error"], "not_found");
            reply.expect(404, "Not Found");
        } else {
            assert_eq!(reply.body["error"], "not_authorised");
            reply.expect(401, "User not authorised to access virtual host");
        }
    }
}
