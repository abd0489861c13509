//! Tests environments: documents with named brokers, variables and additional specs.

use crate::support::Topo;

const ENVIRONMENTS: &str = "version: 1
environments:
  staging:
    variables: {VHOST: shop-staging, TYPE: classic, MAX: 1000}
  prod:
    cluster: prod-eu
    variables: {VHOST: shop, TYPE: quorum, MAX: 100000}
    specs: [only-prod/audit.yaml]
";

const SPEC: &str = "version: 1
vhost: ${VHOST}
queues:
  orders: {type: '${TYPE}', maxLength: '${MAX}', deadLetter: none}
";

const AUDIT: &str = "version: 1
vhost: shop
queues:
  audit: {type: quorum, deadLetter: none}
";

fn topo() -> Topo {
    Topo::offline()
        .file("specs/environments.yaml", ENVIRONMENTS)
        .file("specs/shop.yaml", SPEC)
        .file("specs/only-prod/audit.yaml", AUDIT)
}

fn plan(topo: &Topo, words: &[&str]) -> crate::support::Output {
    topo.run(["plan", "specs", "--against=empty"].into_iter().chain(words.iter().copied()))
}

#[test]
fn environment_sets_variables_and_adds_specs() {
    let topo = topo();
    let staging = plan(&topo, &["--env=staging"]).expect_code(0).expect_text("vhost shop-staging");
    staging.expect_text("environment staging").expect_text("x-max-length 1000").expect_no_text("queue audit");
    let prod = plan(&topo, &["--env=prod"]).expect_code(0).expect_text("queue audit");
    prod.expect_text("quorum · x-max-length 100000").expect_text("environment prod");
    // Flags take precedence over the environment, and the environment over the process.
    plan(&topo, &["--env=prod", "--var=MAX=7"]).expect_code(0).expect_text("x-max-length 7");
    let topo = topo.env("TOPO_VAR_MAX", "8").env("TOPO_ENV", "staging");
    plan(&topo, &[]).expect_code(0).expect_text("x-max-length 1000");
}

#[test]
fn environments_have_different_fingerprints() {
    let topo = topo();
    let same = ENVIRONMENTS
        .replace("{VHOST: shop-staging, TYPE: classic, MAX: 1000}", "{VHOST: shop, TYPE: quorum, MAX: 100000}");
    topo.write("specs/environments.yaml", &same.replace("    specs: [only-prod/audit.yaml]\n", ""));
    let fingerprint = |name: &str| {
        let flag = format!("--env={name}");
        let document = plan(&topo, &[&flag, "--format=json"]).expect_code(0).plan();
        assert_eq!(document["options"]["environment"], name);
        document["fingerprint"].as_str().unwrap().to_owned()
    };
    assert_ne!(fingerprint("staging"), fingerprint("prod"));
}

#[test]
fn environment_must_be_selected() {
    let topo = topo();
    let text = "select one with --env NAME: staging, prod";
    plan(&topo, &[]).expect_code(64).expect_text("the specs declare environments").expect_text(text);
    topo.run(["show", "--expanded", "specs"]).expect_code(64).expect_text(text);
    topo.run(["show", "--expanded", "specs", "--env=staging"]).expect_code(0).expect_text("vhost: shop-staging");
    topo.run(["graph", "specs", "--env=staging"]).expect_code(0).expect_text("orders");
    plan(&topo, &["--env=prd"]).expect_code(64).expect_text("did you mean `prod`?");
    let other = Topo::offline().file("shop.yaml", "version: 1\nvhost: shop\n");
    let text = "--env or TOPO_ENV selects environment `prod`, but the specs declare no environments";
    other.run(["plan", "shop.yaml", "--against=empty", "--env=prod"]).expect_code(64).expect_text(text);
}

#[test]
fn validate_checks_all_environments() {
    let topo = topo();
    let all = topo.run(["validate", "specs"]).expect_code(0);
    all.expect_text("vhost shop-staging: 0 exchanges, 1 queue").expect_text("vhost shop: 0 exchanges, 2 queues");
    topo.run(["validate", "specs", "--env=staging"]).expect_code(0).expect_no_text("vhost shop: ");
    topo.run(["validate", "specs", "--format=json"]).expect_code(64).expect_text("requires --env");
    topo.run(["validate", "specs", "--format=json", "--env=prod"]).expect_code(0);
    // An error in one environment only.
    topo.write("specs/environments.yaml", &ENVIRONMENTS.replace("TYPE: classic", "TYPE: clasic"));
    let one = topo.run(["validate", "specs"]).expect_code(65).expect_text("environment staging");
    one.expect_text("`type` cannot be `clasic`").expect_text("vhost shop: 0 exchanges, 2 queues");
}

#[test]
fn environments_are_checked() {
    let topo = topo();
    let refused = |environments: &str, text: &str| {
        topo.write("specs/environments.yaml", &format!("version: 1\nenvironments:\n{environments}"));
        topo.run(["validate", "specs"]).expect_code(65).expect_text(text).expect_text("environments.yaml:");
    };
    let lacks = "error[variable]: environment `b` does not set the variable `TYPE`";
    refused("  a: {variables: {VHOST: v, TYPE: classic}}\n  b: {variables: {VHOST: w}}\n", lacks);
    refused("  a: {variables: {VHOST: [v]}}\n", "the value of variable `VHOST` is not a string, number or boolean");
    refused("  a: {variables: {'a b': v}}\n", "invalid variable name `a b`");
    refused("  a: {url: 'http://guest:hunter2@host'}\n", "the URL contains a user name");
    refused("  a: {vars: {}}\n", "error[unknown-key]");
    refused("  a: {}\n  a: {}\n", "error[duplicate-key]");
    refused("  a: 5\n", "error[wrong-type]");
    topo.write("specs/environments.yaml", &format!("{ENVIRONMENTS}---\n{ENVIRONMENTS}"));
    topo.run(["validate", "specs"]).expect_code(65).expect_text("error[declared-twice]");
    topo.write("specs/environments.yaml", &ENVIRONMENTS.replace("only-prod/audit.yaml", "missing.yaml"));
    plan(&topo, &["--env=prod"]).expect_code(65).expect_text("specs/missing.yaml");
}

/// A user name or password in the URL of an environment is not printed.
#[test]
fn login_in_a_url_is_not_printed() {
    let topo =
        topo().file("specs/environments.yaml", "version: 1\nenvironments: {a: {url: 'http://u:hunter2@host'}}\n");
    topo.run(["validate", "specs"]).expect_code(65).expect_no_text("hunter2");
}

/// `--vhost` selects a vhost, and the name of the cluster is still checked.
#[test]
fn cluster_of_an_environment_is_part_of_every_plan() {
    let topo = topo();
    let document = plan(&topo, &["--env=prod", "--vhost=shop", "--format=json"]).expect_code(0).plan();
    assert_eq!(document["cluster"]["desired"]["scope"]["clusterName"], "prod-eu", "{document}");
    topo.write("specs/cluster.yaml", "version: 1\ncluster: {name: other}\n");
    let text = "the environment requires cluster `prod-eu`, but the spec requires `other`";
    plan(&topo, &["--env=prod"]).expect_code(65).expect_text(text);
}

/// A spec of another environment is not read, also if it is a folder inside of the specs.
#[test]
fn specs_of_other_environments_are_not_read() {
    let folder = ENVIRONMENTS.replace("only-prod/audit.yaml", "only-prod");
    let topo = topo().file("specs/environments.yaml", &folder);
    plan(&topo, &["--env=staging"]).expect_code(0).expect_no_text("queue audit");
    plan(&topo, &["--env=prod"]).expect_code(0).expect_text("queue audit");
    let topo = self::topo();
    let named = ["plan", "specs/environments.yaml", "specs/only-prod/audit.yaml", "--against=empty", "--env=staging"];
    topo.run(named).expect_code(64).expect_text("specs/only-prod/audit.yaml belongs to another environment");
}

/// The environment of the process must not lead to another broker than the selected environment.
#[test]
fn other_broker_of_the_process_is_refused() {
    let spec = "version: 1\nenvironments: {a: {url: 'http://127.0.0.1:1'}}\n---\nversion: 1\nvhost: v\n";
    let topo = Topo::offline().file("topology.yaml", spec).env("TOPO_URL", "http://127.0.0.1:2");
    let text = "TOPO_URL and environment `a` in the specs select different brokers";
    topo.run(["plan", "--env=a"]).expect_code(64).expect_text(text);
    topo.run(["lock", "--vhost=v", "--env=a"]).expect_code(64).expect_text(text);
    topo.run(["apply", "--abort=queues/v/q", "--env=a", "-y"]).expect_code(64).expect_text(text);
    topo.run(["plan", "--env=a", "--url=http://127.0.0.1:3"]).expect_code(1).expect_text("http://127.0.0.1:3");
    topo.run(["apply", "--plan=plan.json", "--env=a"]).expect_code(64).expect_text("cannot be used with");
}

/// `3.10` and `3.1` are the same number, so the value of a variable must be a string.
#[test]
fn numbers_with_another_form_are_refused() {
    let topo = topo();
    for value in ["3.10", "0x10", "1_000"] {
        let environments = format!("version: 1\nenvironments: {{a: {{variables: {{VERSION: {value}}}}}}}\n");
        topo.write("specs/environments.yaml", &environments);
        let output = topo.run(["validate", "specs"]);
        let is_text = output.code == Some(65) && output.says("put the value in quotes") || value == "1_000";
        assert!(is_text, "{value}: {output}");
    }
}

#[test]
fn validate_reports_the_errors_of_each_environment() {
    let topo = topo();
    let missing = "version: 1\nenvironments:\n  a: {specs: [missing-a.yaml]}\n  b: {specs: [missing-b.yaml]}\n";
    topo.write("specs/environments.yaml", missing);
    let output = topo.run(["validate", "specs"]).expect_code(65);
    output.expect_text("missing-a.yaml").expect_text("missing-b.yaml");
}
