//! The test harness: real RabbitMQ nodes, clients to prepare and inspect them, faulty proxies, and the real binary.
//!
//! ```ignore
//! let vhost = Node::shared().vhost("ttl");
//!
//! vhost.amqp().declare_queue("orders", &[("x-message-ttl", Argument::LongInt(60_000))]).unwrap();
//!
//! let proxy = Proxy::to(Node::shared()).on(gets().path("/api/queues").nth(1), Fault::CutBefore);
//!
//! let output = Topo::new(&vhost)
//!
//!      .through(&proxy)
//!
//!      .spec("queues: {orders: {type: classic, messageTtl: 30s}}")
//!
//!      .run(["plan", "--detailed-exitcode"])
//!
//!      .expect_code(3);
//!
//! assert!(output.stdout.contains("60000 (1m) → 30000 (30s)"), "{output}");
//! ```

#![allow(dead_code, reason = "no single target uses everything")]

pub(crate) mod amqp;
pub(crate) mod amqp_proxy;
pub(crate) mod apply_resolution;
pub(crate) mod child;
pub(crate) mod http;
pub(crate) mod node;
pub(crate) mod page;
pub(crate) mod proxy;
pub(crate) mod random;
pub(crate) mod raw_amqp;
pub(crate) mod schemas;
pub(crate) mod temp_dir;
pub(crate) mod timing;
pub(crate) mod tls;
pub(crate) mod topic_permissions;
pub(crate) mod topo;
pub(crate) mod vhost;
pub(crate) mod wait;
pub(crate) mod worker;

#[allow(unused_imports, reason = "suites import everything with one line")]
pub(crate) use self::{
    amqp::{Amqp, Argument, Held, Message, NONE, Outcome, text},
    amqp_proxy::{AmqpProxy, Stop},
    child::child,
    http::Http,
    node::{Node, Options},
    page::{Page, Part, Shell},
    proxy::{Fault, Gate, Matching, Proxy, any, deletes, gets, posts, puts, writes},
    random::{Random, cases, draws_on, number, seed},
    schemas::{valid_contract, valid_plan, valid_status, valid_test_results},
    timing::TimingBaseline,
    tls::Tls,
    topo::{Output, Running, Topo},
    vhost::{User, Vhost},
    wait::{SetOnDrop, block_on, run_concurrently, until, until_ok},
    worker::{Work, Worker},
};
