//! Runs the unchanged `action.yml` and its scripts on a real broker, with a substitute for GitHub's API.

mod github;
mod runner;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use self::github::GitHub;
use self::runner::Job;
use crate::support::{Argument, Node, Vhost, temp_dir};

const PULL: u64 = 7;
const INSTALLED: (&str, &str) = ("version", "installed");
const PASSWORD: (&str, &str) = ("password", "guest");
const PLAN: (&str, &str) = ("command", "plan");
const APPLY: (&str, &str) = ("command", "apply");

fn spec(vhost: &Vhost<'_>, queues: &str) -> String {
    format!("version: 1\nvhost: {}\nqueues: {{{queues}}}\n", vhost.name())
}

/// Returns a job for one queue, which uses the binary under test.
fn job(github: &GitHub, vhost: &Vhost<'_>) -> Job {
    let job = Job::new(github, vhost);
    job.file("topology.yaml", &spec(vhost, "orders: {type: classic}"));
    job
}

#[test]
fn changed_plan_updates_its_comment() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = job(&github, &vhost);
    // Adds other comments before and after, including one that imitates the Action.
    (0..120).for_each(|number| github.comment(PULL, "alice", &format!("remark {number}")));
    github.comment(PULL, "mallory", "<!-- topo plan: topo; fingerprint=0000 -->\nall is well");
    let first = job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(0);
    assert_eq!(first.output("result"), "changes");
    assert_eq!(first.output("exit-code"), "2");
    let plan: Value = serde_json::from_str(&fs::read_to_string(first.output("plan")).unwrap()).unwrap();
    crate::support::valid_plan(&plan);
    assert_eq!(plan["fingerprint"], first.output("fingerprint"));

    let [comment] = &github.comments_of_bot(PULL)[..] else { panic!("{first:#?}") };
    let marker = format!("<!-- topo plan: topo; fingerprint={} -->\n### topo plan", first.output("fingerprint"));
    assert!(comment.body.starts_with(&marker), "{}", comment.body);
    for part in ["| + | queue orders | create |", "badcafe11111", "/people/shop/actions/runs/42"] {
        assert!(comment.body.contains(part), "{part}: {}", comment.body);
    }
    assert!(first.output("comment-url").ends_with(&comment.id.to_string()), "{first:#?}");
    assert!(first.summary.contains("| + | queue orders | create |"), "{first:#?}");
    // The annotation is at the line in the spec.
    let first = first.expect_log("::notice file=topology.yaml,line=3,col=10,title=topo plan::");
    assert!(!first.log.contains("guest"), "{first:#?}");

    // The next push updates the same comment, which is on the second page.
    job.file("topology.yaml", &spec(&vhost, "orders: {type: classic}, mails: {type: classic}"));
    github.asked();
    let second = job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(0);
    let [updated] = &github.comments_of_bot(PULL)[..] else { panic!("{second:#?}") };
    assert_eq!(updated.id, comment.id);
    assert!(updated.body.contains("queue mails") && updated.body.contains(second.output("fingerprint")));
    assert_ne!(second.output("fingerprint"), first.output("fingerprint"));
    let asked = github.asked();
    assert_eq!(asked.iter().filter(|it| it.starts_with("GET ")).count(), 2, "{asked:?}");
    assert_eq!(asked.last().unwrap(), &format!("PATCH /api/repos/people/shop/issues/comments/{}", comment.id));

    // A plan for another broker on the same pull request has its own comment.
    job.uses(&[PLAN, PASSWORD, INSTALLED, ("name", "topo plan")]).expect_code(0);
    assert_eq!(github.comments_of_bot(PULL).len(), 2);
    assert_eq!(github.all_comments(), 123);
}

#[test]
fn conflict_fails_the_job_and_is_in_the_comment() {
    let vhost = Node::shared().vhost("action");
    vhost.amqp().declare_queue("orders", &[("x-max-length", Argument::LongInt(5))]).unwrap();
    let github = GitHub::start();
    let job = job(&github, &vhost);
    let ran = job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(3).expect_log("::error file=topology.yaml,line=3");
    assert_eq!(ran.output("result"), "blocked");
    let comments = github.comments_of_bot(PULL);
    assert!(comments[0].body.contains("BLOCKED by 1 conflict"), "{}", comments[0].body);

    // Spec errors are annotated too, and the job has no plan to apply.
    job.file("topology.yaml", "version: 1\nvhost: shop\nqueues: {orders: {type: clasic}}\n");
    let ran = job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(65);
    assert_eq!(ran.output("result"), "failed");
    let [comment] = &github.comments_of_bot(PULL)[..] else { panic!("{ran:#?}") };
    assert!(comment.body.starts_with("<!-- topo plan: topo; fingerprint= -->\n### topo plan: failed (exit code 65)"));
    assert!(comment.body.contains("did you mean `classic`"), "{}", comment.body);
    job.uses(&[APPLY, PASSWORD, INSTALLED]).expect_code(64).expect_log("so there is no reviewed plan");
}

#[test]
fn only_the_reviewed_plan_is_applied() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = job(&github, &vhost);
    let plan = job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(0);
    // With a wrong fingerprint, or if the broker has changed, topo applies nothing.
    let wrong = job.uses(&[APPLY, PASSWORD, INSTALLED, ("expect", "0123456789abcdef")]).expect_code(5);
    assert_eq!((wrong.output("result"), wrong.output("exit-code")), ("failed", "5"));
    vhost.amqp().declare_queue("orders", &[("x-max-length", Argument::LongInt(5))]).unwrap();
    job.uses(&[APPLY, PASSWORD, INSTALLED]).expect_code(5);
    vhost.http().delete(&vhost.path("queues", &["orders"])).expect_status(204);
    assert!(vhost.names("queues").is_empty());

    // After the merge, the event is a push. The commit identifies the pull request with the comment.
    job.event(&json!({ "after": "c0ffee0000000000" }));
    job.uses(&[APPLY, PASSWORD, INSTALLED]).expect_code(64).expect_log("this commit has no pull request");
    // A different pull request, with a different plan, merged the same commit into another branch.
    github.merged_into("c0ffee0000000000", 99, "release");
    job.uses(&[APPLY, PASSWORD, INSTALLED]).expect_code(64).expect_log("this commit has no pull request");
    github.merged_into("c0ffee0000000000", PULL, "main");
    let applied = job.uses(&[APPLY, PASSWORD, INSTALLED]).expect_code(0);
    assert_eq!(applied.output("result"), "applied");
    assert_eq!(vhost.names("queues"), ["orders"]);
    let comments = github.comments_of_bot(PULL);
    let bodies: Vec<&str> = comments.iter().map(|it| it.body.as_str()).collect();
    assert!(bodies[0].contains(plan.output("fingerprint")), "{bodies:#?}");
    assert!(bodies[1].starts_with("<!-- topo apply: topo; applied -->\n### topo apply: done"), "{bodies:#?}");
    assert!(bodies[1].contains("Applied: 1 of 1 step done."), "{bodies:#?}");
    assert_eq!(bodies.len(), 2);

    // Without a review, `arguments` can allow the deletions. The backup contains the deleted objects.
    let removed = format!("version: 1\nvhost: {}\nremoved: {{queues: [orders]}}\n", vhost.name());
    job.file("topology.yaml", &removed);
    let allowed = [("expect", "any"), ("arguments", "--allow=message-loss,mass-delete,routing-gap")];
    let removed = job.uses(&[APPLY, PASSWORD, INSTALLED, allowed[0], allowed[1]]).expect_code(0);
    assert!(fs::read_to_string(removed.output("backup")).unwrap().contains("\"orders\""), "{removed:#?}");
    assert!(vhost.names("queues").is_empty());
}

/// Both plans are made before either is applied. The second review does not contain the changes of the first pull
/// request.
#[test]
fn consecutive_pull_requests_are_applied() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = Job::new(&github, &vhost);
    let holds = |queues: &[&str], more: &str| {
        let queues: Vec<String> = queues.iter().map(|name| format!("{name}: {{type: classic}}")).collect();
        job.file("topology.yaml", &(spec(&vhost, &queues.join(", ")) + more));
    };
    let plan = |number: u64| {
        job.event(&json!({ "pull_request": {"number": number, "head": {"sha": "badcafe111111111"}} }));
        job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(0)
    };
    let merged = |number: u64| {
        job.event(&json!({ "after": "c0ffee0000000000" }));
        github.merged("c0ffee0000000000", number);
        job.uses(&[APPLY, PASSWORD, INSTALLED])
    };
    holds(&["base"], "");
    job.uses(&[APPLY, PASSWORD, INSTALLED, ("expect", "any")]).expect_code(0);
    holds(&["base", "a"], "");
    plan(1);
    holds(&["base", "b"], "");
    plan(2);
    // A policy for all queues in the spec affects more queues than the reviewed ones if a queue was added after the
    // review.
    let policy = "policies: {all: {pattern: \"^(base|a|b)$\", definition: {maxLength: 100}}}\n";
    holds(&["base"], policy);
    plan(3);

    holds(&["base", "a"], "");
    merged(1).expect_code(0);
    holds(&["base", "a", "b"], "");
    merged(2).expect_code(0);
    assert_eq!(vhost.names("queues"), ["a", "b", "base"]);
    // A second run after a reported failure has no changes to apply.
    merged(2).expect_code(0).expect_log("No changes.");
    holds(&["base", "a", "b"], policy);
    merged(3).expect_code(5).expect_log("+ policy all");
    assert!(vhost.list("policies").is_empty());
    // The steps of docs/how-to/github-actions.md: a manual plan after the merge, and its fingerprint.
    job.event(&json!({ "inputs": {} }));
    let now = job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(0);
    let fingerprint = now.output("fingerprint");
    assert!(now.summary.contains(&format!("Fingerprint `{fingerprint}`")), "{now:#?}");
    github.refuse_reads(403);
    github.refuse_writes(403);
    job.uses(&[APPLY, PASSWORD, INSTALLED, ("expect", fingerprint)]).expect_code(0);
    assert_eq!(vhost.list("policies").len(), 1);
}

/// If the comment cannot be updated, a complete apply still succeeds. Before the apply, the review is required.
#[test]
fn comment_failure_does_not_fail_a_finished_apply() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = job(&github, &vhost);
    job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(0);
    github.refuse_reads(403);
    let refused = job.uses(&[APPLY, PASSWORD, INSTALLED]).expect_code(1);
    refused.expect_log("::error title=topo::GitHub responded with 403 to the request for the comments of 7");
    job.event(&json!({ "after": "c0ffee0000000000" }));
    let refused = job.uses(&[APPLY, PASSWORD, INSTALLED]).expect_code(1);
    refused.expect_log("::error title=topo::GitHub responded with 403 to the request for the pull request of c0ffee");
    assert!(vhost.names("queues").is_empty());
    // With a fingerprint or without a review, the Action does not query GitHub for the pull request of the commit.
    github.asked();
    job.uses(&[APPLY, PASSWORD, INSTALLED, ("expect", "any")]).expect_code(0);
    assert_eq!(vhost.names("queues"), ["orders"]);
    assert_eq!(github.asked(), Vec::<String>::new());
    job.event(&json!({ "pull_request": {"number": 7} }));
    let done = job.uses(&[APPLY, PASSWORD, INSTALLED, ("expect", "any")]).expect_code(0);
    assert_eq!(done.output("result"), "applied");
    done.expect_log("::warning title=topo::GitHub responded with 403 to the request for the comments of 7");
}

/// Another workflow could let the bot post untrusted text that imitates a plan.
#[test]
fn duplicate_plan_comments_are_refused() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = job(&github, &vhost);
    job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(0);
    job.file("topology.yaml", &spec(&vhost, "orders: {type: classic}, more: {type: classic}"));
    job.event(&json!({ "schedule": "0 3 * * *" }));
    let other = job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(0);
    let forged = format!("<!-- topo plan: topo; fingerprint={} -->\nthank you!", other.output("fingerprint"));
    github.comment(PULL, "github-actions[bot]", &forged);
    job.event(&json!({ "pull_request": {"number": 7} }));
    job.uses(&[APPLY, PASSWORD, INSTALLED]).expect_code(64).expect_log("several comments with a plan of topo");
    assert!(vhost.names("queues").is_empty());
}

/// The job of a fork has no secrets and is not allowed to comment.
#[test]
fn fork_gets_no_plan() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = job(&github, &vhost);
    github.refuse_writes(403);
    let fork = job.uses(&[PLAN, ("username", "topo-plan"), ("password", ""), INSTALLED]).expect_code(64);
    assert_eq!(fork.output("result"), "failed");
    assert!(fork.summary.contains("no password was given for user `topo-plan`"), "{fork:#?}");
    fork.expect_log("::warning title=topo::GitHub responded with 403: the job is not allowed to comment");
}

/// The tests need no broker, and the job for a fork has no permission to comment.
#[test]
fn tests_run_without_a_broker() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = job(&github, &vhost);
    let test = ("command", "test");
    let none = job.uses(&[test, INSTALLED]).expect_code(64).expect_log("no test cases found");
    assert_eq!(none.output("result"), "failed");
    let case = |queue: &str| {
        format!("version: 1\ntests: {{it: {{publish: {{queue: orders}}, ends: {{{queue}: waiting}}}}}}\n")
    };
    job.file("topology.test.yaml", &case("orders"));
    let passed = job.uses(&[test, INSTALLED]).expect_code(0);
    assert_eq!((passed.output("result"), passed.output("exit-code")), ("passed", "0"));
    let [comment] = &github.comments_of_bot(PULL)[..] else { panic!("{passed:#?}") };
    assert!(comment.body.contains("### topo test: 1 case: 1 passed"), "{}", comment.body);
    // The next push updates the comment.
    job.file("topology.test.yaml", &case("orders").replace("waiting", "acked"));
    let failed = job.uses(&[test, INSTALLED, ("arguments", "--fail-under=0")]).expect_code(1);
    let [updated] = &github.comments_of_bot(PULL)[..] else { panic!("{failed:#?}") };
    assert!(updated.body.contains("ends in orders: expected acked, got waiting"), "{}", updated.body);
    assert!(failed.summary.contains("Coverage of topology.yaml"), "{failed:#?}");
    let failed = failed.expect_log("::error file=topology.test.yaml,line=2,col=9,title=topo test::it (RabbitMQ ");
    assert_eq!(failed.output("result"), "failed");
    github.refuse_writes(403);
    let fork = job.uses(&[test, INSTALLED, ("comment-author", "fork")]).expect_code(1);
    assert!(fork.summary.contains("### topo test: 1 case: 1 failed"), "{fork:#?}");
}

/// The job has no permission to comment (no `pull-requests: write`), the event has no pull request, or comments are
/// disabled.
#[test]
fn summary_replaces_a_missing_comment() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = job(&github, &vhost);
    job.github().refuse_writes(403);
    let mute = job
        .uses(&[PLAN, PASSWORD, INSTALLED])
        .expect_code(0)
        .expect_log("::warning title=topo::GitHub responded with 403");
    assert!(mute.summary.contains("queue orders") && mute.output("comment-url").is_empty(), "{mute:#?}");
    github.asked();
    job.uses(&[PLAN, PASSWORD, INSTALLED, ("comment", "false")]).expect_code(0);
    job.event(&json!({ "schedule": "0 3 * * *" }));
    job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(0);
    assert_eq!(github.asked(), Vec::<String>::new());
    // Any other error of GitHub fails the job.
    github.refuse_writes(418);
    job.event(&json!({ "issue": {"number": 7, "pull_request": {}} }));
    job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(1).expect_log("GitHub responded with 418");
}

#[test]
fn specs_read_variables_but_not_inputs() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = Job::new(&github, &vhost).env("TOPO_VAR_B", "from-the-job");
    let spec = |name: &str| format!("version: 1\nvhost: {}\nqueues: {{\"{name}\": {{type: classic}}}}\n", vhost.name());
    job.file("topology.yaml", &spec("${A}.${B}"));
    let variables = ("variables", "A=from an input\n");
    job.uses(&[PLAN, PASSWORD, INSTALLED, variables]).expect_code(0).expect_log("from an input.from-the-job");
    job.file("topology.yaml", &spec("${INPUT_GITHUB_TOKEN}.${TOPO_PASSWORD}"));
    let ran = job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(65);
    ran.expect_log("the variable `INPUT_GITHUB_TOKEN` is not set")
        .expect_log("the variable `TOPO_PASSWORD` is not set");
}

#[test]
fn topo_runs_without_the_inputs_in_its_environment() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let script =
        "env --null | cut --zero-terminated -d= -f1 | tr '\\0' '\\n' >>\"$RUNNER_TEMP/seen\"\nexec \"$TOPO\" \"$@\"\n";
    let job = Job::new(&github, &vhost).stand_in(script);
    job.file("topology.yaml", &spec(&vhost, "orders: {type: classic}"));
    for command in [PLAN, APPLY] {
        job.uses(&[command, PASSWORD, INSTALLED, ("expect", "any")]).expect_code(0);
        let seen = job.take("temporary/seen");
        assert!(seen.lines().any(|name| name == "TOPO_PASSWORD"), "{seen}");
        assert!(!seen.lines().any(|name| name.starts_with("INPUT_")), "{seen}");
    }
}

/// Names, paths and inputs contain shell syntax, and text contains workflow commands.
#[test]
fn user_text_is_never_executed() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = Job::new(&github, &vhost);
    let file = "$(touch pwned)`touch pwned`;touch pwned.yaml";
    let names = ["$(touch pwned)", "::error::pwned", "`touch pwned`", "a;touch pwned;", "| touch pwned"];
    let bindings = "[{exchange: amq.topic, routingKey: \"${A} ${B}\"}]";
    let queue = |name: &&str| format!("{name:?}: {{type: classic, bindings: {bindings}}}");
    job.file(file, &spec(&vhost, &names.iter().map(queue).collect::<Vec<_>>().join(", ")));
    let hostile = [("specs", file), ("arguments", "--var=A=$(touch pwned)\n\n--var=B=`touch pwned`; touch pwned\n")];
    let ran = job.uses(&[PLAN, PASSWORD, INSTALLED, hostile[0], hostile[1]]).expect_code(0);
    // Text that can contain names is printed while workflow commands are disabled.
    let stop = "::stop-commands::";
    let token = ran.log[ran.log.find(stop).unwrap() + stop.len()..].lines().next().unwrap();
    let (_, behind) = ran.log.split_once(&format!("\n::{token}::\n")).unwrap();
    assert!(
        token.len() > 30 && !behind.lines().any(|line| line.trim_start().starts_with("::error::pwned")),
        "{ran:#?}"
    );
    let again = job.uses(&[PLAN, PASSWORD, INSTALLED, hostile[0], hostile[1]]);
    assert!(!again.log.contains(token), "the token differs each time");
    for (name, code) in [("x; touch pwned", 64), ("x -->", 64), ("$(touch pwned)", 64), ("staging/eu 1", 0)] {
        job.uses(&[PLAN, PASSWORD, INSTALLED, hostile[0], hostile[1], ("name", name)]).expect_code(code);
    }
    job.uses(&[("command", "plan; touch pwned"), PASSWORD, INSTALLED]).expect_code(64);
    job.uses(&[APPLY, PASSWORD, INSTALLED, hostile[0], hostile[1], ("expect", "$(touch pwned)")]).expect_code(5);
    let left: Vec<_> = fs::read_dir(job.workspace()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [file]);
}

#[test]
fn plan_too_long_for_a_comment_is_in_the_summary() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = Job::new(&github, &vhost);
    let queues = |kind: &str| {
        let one = |number: usize| format!("orders.of.another.team.with.a.long.name.{number}: {{type: {kind}}}");
        (0..1500).map(one).collect::<Vec<_>>().join(",\n  ")
    };
    let comment_on = |kind: &str, code: i32| {
        job.file("topology.yaml", &spec(&vhost, &queues(kind)));
        let ran = job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(code);
        let [comment] = &github.comments_of_bot(PULL)[..] else { panic!("{}", ran.log) };
        let body = comment.body.clone();
        assert_eq!(body.matches("<details>").count(), body.matches("</details>").count());
        let fences: Vec<&str> = body.lines().filter(|line| line.starts_with("```")).collect();
        assert!(fences.len().is_multiple_of(2), "{fences:?}");
        (body, ran)
    };
    let (body, ran) = comment_on("classic", 0);
    assert!(body.len() > 50_000 && body.contains("… truncated"), "{}", body.len());
    assert!(body.contains("\nThe [summary of the job]("), "{}", &body[body.len() - 500..]);
    assert!(ran.summary.len() > body.len() && ran.summary.contains("long.name.1499"), "{}", ran.summary.len());
    // Repeated errors are summarized, so the comment is short enough.
    let (body, _) = comment_on("\"``clasic``\"", 65);
    assert!(body.contains("and 1,460 more") && !body.contains("… truncated"), "{body}");
}

/// The Action installs a release from the archive that `release/archive` creates.
#[test]
fn release_is_installed() {
    let vhost = Node::shared().vhost("action");
    let github = GitHub::start();
    let job = job(&github, &vhost).without_topo();
    job.uses(&[PLAN, PASSWORD, INSTALLED]).expect_code(1).expect_log("topo is not on the PATH");
    job.uses(&[PLAN, PASSWORD]).expect_code(1).expect_log("cannot download");

    let folder = temp_dir::folder();
    // A shell script replaces the binary, because packing a debug build would take half a minute.
    let binary = folder.path().join("by-a-line");
    fs::write(&binary, format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_topo"))).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let made = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("release/archive"))
        .args([binary.as_os_str(), "x86_64-unknown-linux-musl".as_ref(), folder.path().as_os_str()])
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("topo-{version}-x86_64-unknown-linux-musl.tar.gz");
    for file in [name.clone(), format!("{name}.sha256")] {
        let content = fs::read(folder.path().join(&file)).unwrap();
        github.offer(format!("/people/topo/releases/download/v{version}/{file}"), content);
    }
    let plan = job.uses(&[PLAN, PASSWORD]).expect_code(0);
    let expected = format!("topo {version} (");
    let plan = plan.expect_log(&expected);
    assert_eq!(plan.output("result"), "changes");
    // If the runner does not report the Action's repository, as with `uses: ./`, the Action uses the repository of the
    // workflow.
    let job = job.of("");
    job.uses(&[PLAN, PASSWORD]).expect_code(1).expect_log("does not name the repository of this action");
    let own = job.env("GITHUB_WORKSPACE", env!("CARGO_MANIFEST_DIR"));
    own.uses(&[PLAN, PASSWORD]).expect_code(1).expect_log("/people/shop/releases/download/");
    let job = own;

    let job = job.of("people/topo");
    // The Action does not run an archive with a wrong checksum.
    let name = "topo-9.9.9-x86_64-unknown-linux-musl.tar.gz";
    let path = format!("/people/topo/releases/download/v9.9.9/{name}");
    github.offer(path.clone(), b"other".to_vec());
    github.offer(format!("{path}.sha256"), format!("{}  {name}\n", "0".repeat(64)).into_bytes());
    job.uses(&[PLAN, PASSWORD, ("version", "v9.9.9")]).expect_code(1).expect_log("does not match its checksum");
    job.uses(&[PLAN, PASSWORD, ("version", "../../main")]).expect_code(1).expect_log("version is not a version number");
    // The Action follows no redirect to another protocol, such as from https to http.
    let target = github.url().replace("http:", "ftp:");
    github.redirect(
        "/people/topo/releases/download/v9.9.8/topo-9.9.8-x86_64-unknown-linux-musl.tar.gz".to_owned(),
        target,
    );
    job.uses(&[PLAN, PASSWORD, ("version", "v9.9.8")]).expect_code(1).expect_log("curl: (1) Protocol \"ftp\"");
}
