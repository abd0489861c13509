//! Compares the table of known clients with the real client libraries and frameworks: the reaction of a running worker
//! whose queue is recreated, the reaction of a worker that starts with other arguments, and the broker's errors.
//!
//! Without `TOPO_LONG=1`, only the workers of [`SHORT`] run. `tests/clients` contains the workers.

mod default_exchange;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use lapin::options::{BasicConsumeOptions, BasicQosOptions};
use lapin::types::{AMQPValue, FieldTable};
use serde_json::{Value, json};
use tempfile::TempDir;
use topo::model::BrokerVersion;
use topo::model::known_clients::{KNOWN_CLIENTS, KnownClient, OnCancel, OnMissing, Outcome, Reaction, libraries};
use topo::rabbitmq::{may_subscribe_again, needs_pause};

use crate::support::random::is_long;
use crate::support::temp_dir::folder;
use crate::support::{Amqp, Message, Node, Output, Topo, Vhost, block_on, child, run_concurrently, text, until};

/// The clients of a short run.
const SHORT: [&str; 2] = ["Celery", "pika"];
/// The queue of each worker.
const QUEUE: &str = "jobs";
/// The exchange that routes to the queue, with the name of the queue as the routing key.
const EXCHANGE: &str = "work";
/// The time after which a running worker that has received no message hangs. Slow workers try again after 5 s.
const HANGS_AFTER: Duration = Duration::from_secs(20);
/// The hazards of a migration of a queue in use.
const ALLOW: &str = "--allow=consumer-disruption,routing-gap,publish-loss";

/// The paths that `tests/clients/get` prints, by name.
static INSTALLED: LazyLock<BTreeMap<String, PathBuf>> = LazyLock::new(|| {
    let mut command = child(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/get"));
    let output = command.args(is_long().then_some("--all")).output().expect("bash is installed");
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).expect("the script prints UTF-8");
    let paths = printed.lines().filter_map(|line| line.split_once('='));
    paths.map(|(name, path)| (name.to_owned(), PathBuf::from(path))).collect()
});

/// A running worker. It is killed when the value is dropped.
struct Worker {
    process: Child,
    log: PathBuf,
    _folder: TempDir,
}

impl Worker {
    /// Starts a worker that declares its queue, or consumes from the existing queue. All workers except dramatiq
    /// declare a maximum length of 1,000.
    fn start(client: &KnownClient, vhost: &Vhost<'_>, declares: bool) -> Self {
        Self::start_with(client, vhost, declares, &[])
    }

    /// Starts a worker with additional environment variables.
    fn start_with(client: &KnownClient, vhost: &Vhost<'_>, declares: bool, variables: &[(&str, &str)]) -> Self {
        let worker = client.page.replace('-', "_");
        let workers = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/workers")).expect("a folder");
        let mut paths = workers.map(|entry| entry.expect("an entry").path());
        let program = paths.find(|path| path.file_stem().is_some_and(|stem| *stem == *format!("{worker}_worker")));
        let program = program.unwrap_or_else(|| panic!("no worker of {}", client.name));
        let interpreter = match program.extension().and_then(|it| it.to_str()) {
            Some("py") => INSTALLED["python"].clone(),
            Some("js") => "node".into(),
            Some("php") => "php".into(),
            Some("rb") => "ruby".into(),
            other => panic!("no interpreter for {other:?}"),
        };
        let folder = folder();
        let log = folder.path().join("log");
        let output = fs::File::create(&log).expect("a file");
        let url = format!("amqp://guest:guest@127.0.0.1:{}/{}", vhost.node().amqp_port(), vhost.name());
        // The worker ends with this process.
        let mut command = child("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(interpreter).arg(program).env("AMQP_URL", url).env("QUEUE", QUEUE);
        command.env("MODE", if declares { "declare" } else { "passive" }).envs(variables.iter().copied());
        command.envs(INSTALLED.get("node").map(|path| ("NODE_PATH", path))).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(output.try_clone().expect("a file")).stderr(output);
        let process = command.spawn().expect("the interpreter is installed");
        Self { process, log, _folder: folder }
    }

    /// Kills the worker. Its log remains.
    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn is_over(&mut self) -> bool {
        self.process.try_wait().expect("a child").is_some()
    }

    fn printed(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Creates a vhost with the exchange, and with the queue if `max_length` is given.
fn vhost_of(client: &KnownClient, max_length: Option<u64>) -> Vhost<'static> {
    let vhost = Node::shared().vhost(&format!("client-{}", client.page));
    let http = vhost.http();
    http.put(&vhost.path("exchanges", &[EXCHANGE]), &json!({"type": "direct", "durable": true})).expect_status(201);
    if let Some(max_length) = max_length {
        let declared = json!({"durable": true, "arguments": {"x-max-length": max_length}});
        http.put(&vhost.path("queues", &[QUEUE]), &declared).expect_status(201);
    }
    vhost
}

/// Returns true if the broker lists the consumer of the queue with the connection of its client. The broker collects
/// both separately.
fn has_listed_client(vhost: &Vhost<'_>) -> bool {
    let consumers = vhost.http().list(&vhost.path("consumers", &[]));
    let of_queue = consumers.as_array().unwrap().iter().find(|consumer| consumer["queue"]["name"] == QUEUE);
    let Some(port) = of_queue.map(|consumer| &consumer["channel_details"]["peer_port"]) else { return false };
    let connections = vhost.http().list("/api/connections");
    connections
        .as_array()
        .unwrap()
        .iter()
        .any(|connection| connection["peer_port"] == *port && connection["client_properties"]["product"].is_string())
}

/// Publishes a message through the exchange, and returns true if the worker receives it in this time.
fn is_processed(vhost: &Vhost<'_>, worker: &mut Worker, longest: Duration) -> bool {
    let amqp = vhost.amqp();
    amqp.publish(EXCHANGE, QUEUE, "1");
    let started = Instant::now();
    while started.elapsed() < longest {
        if amqp.ready(QUEUE) == 0 {
            return true;
        }
        if worker.is_over() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    false
}

fn version(node: &Node) -> BrokerVersion {
    node.version().parse().expect("a version")
}

/// The clients of this run.
fn clients() -> impl Iterator<Item = &'static KnownClient> {
    KNOWN_CLIENTS.iter().filter(|client| is_long() || SHORT.contains(&client.name))
}

#[test]
fn running_workers_react_as_in_the_table() {
    let differences = Mutex::new(Vec::new());
    let modes = |client: &'static KnownClient| {
        [true, false]
            .into_iter()
            .filter(|declares| *declares || client.without_declaration.is_some())
            .map(move |it| (client, it))
    };
    run_concurrently(3, clients().flat_map(modes), |(client, declares)| {
        let declares_at_start = client.without_declaration.is_none();
        let vhost = vhost_of(client, (!declares_at_start).then_some(1000));
        let mut worker = Worker::start(client, &vhost, declares);
        until("the queue", || vhost.names("queues").contains(&QUEUE.to_owned()).then_some(()));
        let consumes = client.on_cancel != OnCancel::NotCanceled;
        if consumes {
            until("the client of the consumer", || has_listed_client(&vhost).then_some(()));
        }
        vhost.amqp().bind_queue(EXCHANGE, QUEUE, QUEUE, &[]);
        assert!(is_processed(&vhost, &mut worker, HANGS_AFTER), "{}: {}", client.name, worker.printed());
        let dead_letters = match declares_at_start {
            true => format!("arguments: {{x-dead-letter-exchange: '', x-dead-letter-routing-key: {QUEUE}.XQ}}"),
            false => "deadLetter: none".to_owned(),
        };
        let topo = Topo::new(&vhost).spec(&format!(
            "exchanges: {{{EXCHANGE}: {{type: direct}}}}\n\
             queues:\n  {QUEUE}: {{type: classic, maxLength: 5000, onConflict: migrate, {dead_letters}, \
             bindings: [{{exchange: {EXCHANGE}, routingKey: {QUEUE}}}]}}\n"
        ));
        let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(3);
        let name =
            if client.name == client.library.name { client.name.to_owned() } else { format!("{} (", client.name) };
        let is_named_by = |output: &Output, before: &str| {
            [name.as_str(), client.library.name].iter().any(|name| output.says(&format!("{before}{name}")))
        };
        assert_eq!(is_named_by(&plan, ""), consumes, "{}\n{plan}", client.name);
        let applied = topo.run(["apply", "-y", ALLOW]);
        // topo rolls the migration back if the worker declares the old queue twice.
        let is_rolled_back = applied.code != Some(0);
        if is_rolled_back {
            assert!(declares && is_named_by(&applied, "(possibly "), "{}\n{applied}", client.name);
        }
        let is_processed = is_processed(&vhost, &mut worker, HANGS_AFTER);
        let observed = match (is_processed, worker.is_over()) {
            (true, _) if is_rolled_back => Outcome::CausesRollback,
            (true, _) => Outcome::Continues,
            (false, true) => Outcome::Exits,
            (false, false) => Outcome::Hangs,
        };
        let has_pause = needs_pause(version(vhost.node()), false);
        // A slow worker subscribes only after the new queue exists. It then receives no 404.
        let missing = format!("no queue '{QUEUE}' in vhost '{}'", vhost.name());
        let is_late = !declares && vhost.node().logged(&missing).is_empty();
        // A worker can also use the queue within the few milliseconds in which it does not exist.
        let gaps = if consumes && has_pause && !is_late { &[true][..] } else { &[false, true] };
        let mut predicted: Vec<Outcome> = gaps.iter().map(|gap| client.outcome(declares, *gap)).collect();
        // The worker can declare the old queue only after topo has declared the new queue. After its first declaration,
        // it can ignore the next cancel: Celery ignores a cancel in its first read after it subscribed
        // (`_quick_drain`).
        if predicted == [Outcome::CausesRollback] {
            predicted.push(client.outcome(declares, false));
            predicted.extend(applied.says("redeclared the old queue once").then_some(Outcome::Hangs));
        }
        if may_subscribe_again(version(vhost.node()), false) {
            predicted.push(Outcome::Continues);
        }
        let line = format!("{} (declares: {declares}): observed {observed:?}, predicted {predicted:?}", client.name);
        println!("{} {line}", vhost.node().version());
        // The plan cannot know whether the application declares the queue, and states what happens if it does.
        let is_stated = match observed {
            Outcome::Exits => plan.says("exit"),
            Outcome::Hangs => plan.says("hang"),
            Outcome::CausesRollback => plan.says("topo will roll back the migration"),
            Outcome::Continues => !declares || plan.says("subscribe again") || plan.says("such consumers keep working"),
        };
        if !predicted.contains(&observed) || consumes && !is_stated {
            let message = format!("{line}\n{plan}\n{applied}\n{}", worker.printed());
            differences.lock().unwrap().push(message);
        }
    });
    let differences = differences.into_inner().unwrap();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn starting_workers_react_as_in_the_table() {
    run_concurrently(3, clients(), |client| {
        let vhost = vhost_of(client, Some(5000));
        let mut worker = Worker::start(client, &vhost, true);
        let refusal = refusal(&vhost);
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(10) && !worker.is_over() {
            std::thread::sleep(Duration::from_millis(100));
        }
        let observed = if worker.is_over() { Reaction::Exits } else { Reaction::Retries };
        assert_eq!(observed, client.at_start, "{}: {refusal}\n{}", client.name, worker.printed());
    });
}

/// A worker that uses its queue without declaring it starts before the queue exists. The pages state the reaction of
/// the clients whose running workers never receive a 404.
#[test]
fn workers_without_a_queue_react_as_in_the_table() {
    let differences = Mutex::new(Vec::new());
    let starts = |client: &&KnownClient| {
        matches!(client.on_cancel, OnCancel::Exits | OnCancel::Hangs) && client.without_declaration.is_some()
    };
    run_concurrently(3, clients().filter(starts), |client| {
        let vhost = vhost_of(client, None);
        let mut worker = Worker::start(client, &vhost, false);
        let missing = format!("no queue '{QUEUE}' in vhost '{}'", vhost.name());
        until("the error 404", || (!vhost.node().logged(&missing).is_empty()).then_some(()));
        let amqp = vhost.amqp();
        amqp.declare_queue(QUEUE, &[]).unwrap();
        amqp.bind_queue(EXCHANGE, QUEUE, QUEUE, &[]);
        let observed = match is_processed(&vhost, &mut worker, HANGS_AFTER) {
            true => OnMissing::Subscribes,
            false => OnMissing::Exits,
        };
        if observed != client.on_missing || worker.is_over() != (observed == OnMissing::Exits) {
            let message = format!("{}: observed {observed:?}\n{}", client.name, worker.printed());
            differences.lock().unwrap().push(message);
        }
    });
    let differences = differences.into_inner().unwrap();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The queue has no `x-max-length`, so that the error contains the type of the value.
#[test]
fn errors_contain_the_integer_type_of_the_library() {
    let differences = Mutex::new(Vec::new());
    let of_library =
        |library| clients().find(|client| client.library == library && client.without_declaration.is_some());
    run_concurrently(3, libraries().into_iter().filter_map(of_library), |client| {
        let vhost = vhost_of(client, None);
        vhost.amqp().declare_queue(QUEUE, &[]).unwrap();
        let _worker = Worker::start(client, &vhost, true);
        let expected = format!("received the value '1000' of type '{}' but current", client.library.integer_type);
        let refusal = refusal(&vhost);
        if !refusal.contains(&expected) {
            differences.lock().unwrap().push(format!("{}: {refusal}", client.library.name));
        }
    });
    assert!(differences.lock().unwrap().is_empty(), "{differences:#?}");
}

/// Returns the first error 406 in the vhost from the log of the broker.
fn refusal(vhost: &Vhost<'_>) -> String {
    let refused = || vhost.node().logged(&format!("in vhost '{}'", vhost.name()));
    until("the error 406", || refused().into_iter().find(|line| line.contains("inequivalent arg")))
}

/// A quorum queue refuses consumers with a global prefetch count before 4.3. From 4.0 on, the broker does not list this
/// count.
#[test]
fn global_prefetch_is_a_hazard_for_quorum_queues() {
    let vhost = Node::shared().vhost("global-prefetch");
    let amqp = vhost.amqp();
    amqp.declare_queue(QUEUE, &[]).unwrap();
    amqp.declare_queue("quorum", &[("x-queue-type", text("quorum"))]).unwrap();
    let consume = |amqp: &Amqp, queue: &str| {
        let channel = amqp.channel();
        let subscribed = block_on(async {
            channel.basic_qos(5, BasicQosOptions { global: true }).await?;
            channel.basic_consume(queue.into(), "".into(), BasicConsumeOptions::default(), FieldTable::default()).await
        });
        subscribed.map(|consumer| (channel, consumer))
    };
    let is_refused = !vhost.node().at_least(4, 3);
    assert_eq!(consume(&amqp, "quorum").is_err(), is_refused);
    // After a refusal, the connection is closed.
    let amqp = vhost.amqp();
    let _consumer = consume(&amqp, QUEUE).unwrap();
    until("the client of the consumer", || has_listed_client(&vhost).then_some(()));
    let topo = Topo::new(&vhost).spec("queues: {jobs: {type: quorum, onConflict: migrate, deadLetter: none}}");
    if !vhost.node().at_least(4, 0) {
        let expected = "has a connection with a global prefetch count";
        until("the prefetch count", || topo.run(["plan"]).says(expected).then_some(()));
    } else {
        topo.run(["plan"]).expect_no_text("global prefetch count").expect_text("the unknown client ");
    }
}

/// Evaluates the configurations in Python, and declares their queues with the real libraries.
const DECLARE: &str = "\
import asyncio, os
from celery import Celery

def run(name, scope):
    exec(open(name).read(), scope)
    return scope

app = Celery('tasks', broker=os.environ['AMQP_URL'])
routes = run('config_celery.py', {'app': app})['ROUTES']
with app.connection_for_write() as connection:
    for queue in app.amqp.queues.values():
        assert queue.no_declare and queue.name
        queue(connection.default_channel).declare()
        queue(connection.default_channel).queue_declare()
        print('celery', queue.name)
app.conf.task_routes = {'with': routes['routed']}
app.send_task('without', queue='routed')
app.send_task('with')

from faststream.rabbit import RabbitBroker
queues = run('config_faststream.py', {})['QUEUES']

async def declare():
    async with RabbitBroker(os.environ['AMQP_URL']) as broker:
        # The library refuses the other name.
        for name, queue in queues.items():
            if '$' in name:
                continue
            assert not queue.declare and queue.name == name
            queue.declare = True
            await broker.declare_queue(queue)
            print('faststream', name)

asyncio.run(declare())

from dramatiq.brokers.rabbitmq import RabbitmqBroker
cls = run('config_dramatiq.py', {})['SpecBroker']
broker = cls(url=os.environ['AMQP_URL'])
for name in ['counted', 'jobs.work', 'plain']:
    broker.declare_queue(name, ensure=True)
    print('dramatiq', name)
";

/// The broker accepts the declarations of `topo contract --for`, and they create no binding and no exchange.
#[test]
fn configurations_declare_the_queues_as_topo_does() {
    let vhost = Node::shared().vhost("client-config");
    let topo = Topo::new(&vhost).spec(
        "exchanges: {work: {type: topic}, direct: {type: direct}}\n\
         queues:\n  routed: {type: classic, bindings: [{exchange: direct, routingKey: r}]}\n  jobs.work: {type: quorum, retry: {delays: [5s]}, deadLetter: dead, \
         bindings: [{exchange: work, routingKey: job.created}]}\n  \
         counted: {type: quorum, maxRetries: 3, deadLetter: dead}\n  \
         plain: {type: classic, maxPriority: 5, messageTtl: 1m}\n  \
         \"it's 100% \\\"$x\\\" \\\\é\": {type: classic, autoDelete: true}\n\
         deadLetterQueues: {dead: {type: classic}}\n",
    );
    topo.run(["apply", "-y"]).expect_code(0);
    // Receives the messages that Celery publishes to the exchange.
    let amqp = vhost.amqp();
    amqp.declare_queue("copies", &[]).unwrap();
    amqp.bind_queue("direct", "copies", "r", &[]);
    let objects = || (vhost.names("exchanges"), vhost.http().get(&vhost.path("bindings", &[])).expect_status(200));
    let before = objects();
    let folder = folder();
    for framework in ["celery", "faststream", "dramatiq"] {
        let output = topo.run(["contract", "--for", framework]).expect_code(0);
        fs::write(folder.path().join(format!("config_{framework}.py")), &output.stdout).expect("a file");
    }
    let url = format!("amqp://guest:guest@127.0.0.1:{}/{}", vhost.node().amqp_port(), vhost.name());
    let mut command = child("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(&INSTALLED["python"]).args(["-c", DECLARE]).env("AMQP_URL", url);
    let output = command.current_dir(folder.path()).output().expect("Python is installed");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed.lines().count(), 5 + 4 + 3, "{printed}");
    let tasks = |queue: &str| -> Vec<String> {
        let task = |it: &Message| match it.properties.headers().as_ref().and_then(|it| it.inner().get("task")) {
            Some(AMQPValue::LongString(name)) => name.to_string(),
            other => panic!("no task: {other:?}"),
        };
        amqp.get_all(queue).iter().map(task).collect()
    };
    assert_eq!(
        (tasks("routed"), tasks("copies")),
        (vec!["without".to_owned(), "with".to_owned()], vec!["with".to_owned()])
    );
    let added =
        |queue: &Value| queue["destination"].as_str().is_some_and(|it| it.ends_with(".DQ") || it.ends_with(".XQ"));
    let (exchanges, mut bindings) = objects();
    // The default exchange routes to the further queues of dramatiq.
    bindings.as_array_mut().unwrap().retain(|binding| !added(binding));
    assert_eq!((exchanges, bindings.as_array().unwrap().len()), (before.0, before.1.as_array().unwrap().len()));
}
