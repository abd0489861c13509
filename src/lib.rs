//! topo: topology as code for RabbitMQ.
//!
//! ```text
//! spec ──▶ expand ──▶ ┐
//!                     ├─▶ (Topology) ──▶ diff ──▶ plan ──▶ apply ──▶ Report
//! broker::read ──────▶┘                              ▲        │
//!         └──────────── Activity ────────────────────┘    broker::perform
//! export does the reverse: it converts a live vhost to a spec whose plan contains no changes.
//! import converts the state of other tools to a definitions file for export.
//! contract describes what workers must do, and the lifecycle of a message. Like lint, it reads spec + topology.
//! graph computes the drawing of a spec or a plan, including its layout.
//! rabbitmq predicts the behavior of the broker for the other modules.
//! cases runs topology tests in the simulation, without a broker.
//! live runs test cases in scratch vhosts on a broker, and compares the results with the simulation.
//! operate observes and repairs a running topology.
//! render turns values into text.   cli connects the modules.
//! ```
//!
//! # The library without the command line
//!
//! A spec expands to the desired topology of each vhost. Without a broker, the planner compares this topology with an
//! empty vhost or with a definitions file:
//!
//! ```
//! use std::sync::Arc;
//! use topo::broker::definitions;
//! use topo::expand::expand;
//! use topo::model::BrokerVersion;
//! use topo::plan::{Activity, Options, plan_vhost};
//! use topo::rabbitmq::BrokerProfile;
//! use topo::spec::{SourceFile, Variables, parse};
//!
//! let text = r##"
//! version: 1
//! vhost: shop
//! exchanges:
//!   orders: {type: topic}
//! queues:
//!   invoices:
//!     type: quorum
//!     bindings: [{exchange: orders, routingKey: "order.#"}]
//! "##;
//! let file = SourceFile { name: "topology.yaml".to_owned(), text: text.to_owned() };
//! let specs = parse(&[file], &Variables::new())?.vhosts;
//! let profile = BrokerProfile::of(BrokerVersion::new(4, 3, 0));
//! let desired = Arc::new(expand(&specs[0], &profile)?.into_desired());
//!
//! let empty = definitions::empty(desired.topology.vhost.clone(), profile.version);
//! let plan = plan_vhost(&empty.context(&desired, &Activity::default()), &Options::default());
//! let addresses: Vec<&str> = plan.steps.iter().map(|step| step.address.as_str()).collect();
//! assert_eq!(
//!     addresses,
//!     ["vhosts/shop", "exchanges/shop/orders", "queues/shop/invoices", "bindings/shop/orders/queues/invoices/order.%23"]
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With a broker, [`apply::plan`] reads the vhosts and returns a plan. [`apply::run`] executes the plan under a lock
//! and verifies the result:
//!
//! ```no_run
//! # use std::sync::Arc;
//! use topo::apply::{self, Interrupt, RunOptions, RunRequest};
//! use topo::broker::{Access, BaseUrl, ConnectionOptions, Process};
//! use topo::plan::{Desired, Options};
//!
//! # async fn plan_and_apply(desired: Vec<Arc<Desired>>) -> Result<(), Box<dyn std::error::Error>> {
//! let url = BaseUrl::parse("http://localhost:15672")?.url;
//! let connection = ConnectionOptions::new(url, "guest", "guest".into());
//! let access = Access::new(connection, Process::new("deployer", "build-7"))?;
//! let plan = apply::plan(&access, &desired, &Options::default()).await?;
//! let request = RunRequest {
//!     access: &access,
//!     desired: &desired,
//!     reviewed: &plan,
//!     allowed: &[],
//!     backup: None,
//!     interrupt: &Interrupt::default(),
//!     options: &RunOptions::default(),
//! };
//! let outcome = apply::run(&request, &|event| println!("{event:?}")).await?;
//! println!("{}", outcome.status().as_str());
//! # Ok(())
//! # }
//! ```
//!
//! `examples/library/plan_and_apply.rs` is a complete program.
//!
//! # Layers
//!
//! Data flows in one direction, from layer to layer. A test reads the `use` lines and enforces the direction.

// The modules are in layer order. The blank lines prevent rustfmt from sorting the modules.

pub mod model;

pub mod rabbitmq;

pub mod spec;

pub mod expand;

pub mod contract;

pub mod simulation;

pub mod cases;

pub mod lint;

pub mod diff;

pub mod plan;

pub mod export;

pub mod import;

pub mod graph;

pub mod broker;

pub mod apply;

pub mod operate;

pub mod live;

pub mod render;

pub mod cli;
