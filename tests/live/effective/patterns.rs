//! Tests common patterns, and patterns that only PCRE can parse, on unusual names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::json;
use topo::rabbitmq::Pattern;

use super::case::draw_name;
use crate::support::{Node, Random, seed};

/// The patterns. Each pattern is tested on each name.
pub(super) const PATTERNS: &[&str] = &[
    "",
    ".*",
    "^",
    "$",
    "^$",
    "orders",
    "^orders",
    "orders$",
    r"^orders\.(work|mail)$",
    "^orders|work$",
    r"^orders\.work|é$",
    "^orders?",
    "^orders*",
    r"^(?!amq\.).*",
    r"^(?!orders\.).+$",
    r"(?<=orders\.)work",
    r"(?<!orders\.)work$",
    r"^(?=.*work)(?=.*orders)",
    r"^\Qa.b\E",
    r"\Q(\E",
    r"\Qorders.",
    r"^orders\Q.\E",
    "^[[:alpha:]]+$",
    "[[:^digit:]]",
    "[[:punct:]]",
    r"^\w+$",
    r"^\W",
    r"\bwork\b",
    r"\Bork",
    r"\s",
    r"^\S+$",
    "(?i)ORDERS",
    "(?i)É",
    "(?i:o)RDERS",
    "^o(?i)RDERS",
    "^.$",
    "^..$",
    "^.{3}$",
    r"^\d+$",
    r"\D$",
    "é",
    "^é$",
    "[é]",
    "^[^é]+$",
    "^é{2}",
    "日",
    r"^[\x00-\x7f]+$",
    r"^[^\x00-\x7f]",
    r"\xc3",
    r"\xe9",
    r"^(?>a+)b",
    "a++b",
    r"^(a)?(?(1)ab|\.)",
    r"^(?(?=orders)orders\.|é)",
    r"^([^()]*\((?:[^()]|(?1))*\))",
    r"(\((?:[^()]++|(?R))*\))",
    r"^(.|(.)(?1)\2)$",
    "^(a|ab)(?1)c$",
    r"^(a|ab)\g<1>c$",
    "^(?<n>a|ab)(?&n)c$",
    "(?#a comment)orders",
    "(?x) o r d e r s # and so on",
    r"^\x6frders",
    r"\x{6f}rders",
    r"\101|\157",
    r"\p{Lu}",
    r"\p{L}$",
    r"\P{L}",
    r"^\X$",
    r"\h",
    r"\R",
    r"\N$",
    "(?s)orders.work",
    "(?m)^work",
    r"\Aorders\z",
    r"work\Z",
    r"\Gorders",
    r"(a)\1",
    r"(?<n>o)rde\k<n>?",
    r"(?P<n>a)(?P=n)b",
    r"(?'n'r)",
    "(?|o(r)|w(o))r",
    r"(*UCP)\w$",
    r"(*ANYCRLF)orders",
    r"o\Krders",
    "o(*SKIP)(*FAIL)|r",
    "orders(*COMMIT)work|.",
    "(?:o|w)(*ACCEPT)x",
    "^(?:o|w)(?(DEFINE)(?<x>r))(?&x)d",
    "^(a+)+$",
    "a{,3}b",
    "[]a]",
    "[^]a]",
    "[a-",
    "[\\w-]+$",
    r"\$",
    r"\^",
    r"[\\/]",
    r"\\",
    r"\%2F",
    r"\é",
    r"\y",
    r"\_",
    "(",
    ")",
    "*",
    "a**",
    "(?<=a+)b",
    "(?<=a|bc)b",
    "^.*(?<=work)$",
    "(?-i)orders",
    "(?U)o.*s",
    "(?J)(?<n>o)|(?<n>w)",
    "[o-s]{6}",
    "^[A-Z]",
    "^(orders|work)+$",
    "^(?:orders[._-]?)+$",
];

fn names(random: &mut Random) -> BTreeSet<String> {
    let fixed = [
        "orders",
        "orders.work",
        "work",
        "a.b",
        "aab",
        "é",
        "É",
        "éé",
        "e\u{301}",
        "(a(b)c)",
        "50%/é^$",
        "ORDERS",
        "abcba",
        "aabc",
    ];
    let mut names: BTreeSet<String> = fixed.map(str::to_owned).into();
    while names.len() < 70 {
        names.insert(draw_name(random));
    }
    names
}

/// Uses exchanges, which are created quickly and report their policy immediately.
#[test]
fn patterns_match_as_on_the_broker() {
    let node = Node::shared();
    let seed = seed();
    println!("TOPO_SEED={seed}, RabbitMQ {}", node.version());
    let started = Instant::now();
    let vhost = node.vhost("patterns");
    let names = names(&mut Random::new(seed));
    for name in &names {
        let body = json!({"type": "fanout", "durable": true});
        vhost.http().put(&vhost.path("exchanges", &[name]), &body).expect_status(201);
    }
    let (mut wrong, mut unclear, mut counts) = (Vec::new(), BTreeMap::<&str, usize>::new(), [0; 4]);
    for pattern in PATTERNS {
        let body = json!({"pattern": pattern, "apply-to": "exchanges", "definition": {"alternate-exchange": "none"}});
        if !vhost.http().put(&vhost.path("policies", &["p"]), &body).is_success() {
            counts[3] += 1;
            println!("refused: {pattern}");
            continue;
        }
        let listed = vhost.list("exchanges");
        let says: BTreeMap<&str, bool> =
            listed.iter().map(|live| (live["name"].as_str().unwrap(), live["policy"] == "p")).collect();
        let read = Pattern::new(pattern);
        for name in &names {
            match read.matches(name) {
                Some(matches) if matches == says[name.as_str()] => counts[usize::from(matches)] += 1,
                Some(matches) => wrong.push(format!("{pattern:?} on {name:?}: topo: {matches}")),
                None => {
                    counts[2] += 1;
                    *unclear.entry(pattern).or_default() += 1;
                }
            }
        }
    }
    let [no, yes, unknown, refused] = counts;
    println!(
        "{} patterns, {} names: {yes} match, {no} do not, {unknown} unclear, {refused} patterns refused, {} wrong, {:.1} s",
        PATTERNS.len(),
        names.len(),
        wrong.len(),
        started.elapsed().as_secs_f32()
    );
    unclear.iter().for_each(|(pattern, times)| println!("{times:>6}  unclear: {pattern}"));
    assert!(wrong.is_empty(), "TOPO_SEED={seed}: {} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(yes > 500 && no > 500 && unknown * 5 < yes + no, "this proves too little");
}
