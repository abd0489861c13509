//! Checks the SVG graphs of every example, every realistic topology, and large topologies: valid XML without overlaps,
//! overflow or missing names.

use crate::examples::examples;
use crate::support::Topo;
use roxmltree::{Document, Node};
use std::collections::BTreeSet;
use std::path::Path;

/// A drawn element and its area.
#[derive(Clone, Debug, PartialEq)]
struct Area {
    what: String,
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn overlaps(&self, other: &Self) -> bool {
        let slack = 0.3;
        self.right > other.left + slack
            && other.right > self.left + slack
            && self.bottom > other.top + slack
            && other.bottom > self.top + slack
    }

    fn is_within(&self, other: &Self) -> bool {
        let slack = 0.3;
        self.left >= other.left - slack
            && self.right <= other.right + slack
            && self.top >= other.top - slack
            && self.bottom <= other.bottom + slack
    }
}

/// The elements of a graph.
#[derive(Default)]
struct Seen {
    page: Option<Area>,
    /// Queues and exchanges, and the frames around tiers.
    boxes: Vec<Area>,
    /// Tiers.
    pills: Vec<Area>,
    /// Texts in a box or a pill, each with this shape.
    inside: Vec<(Area, Area)>,
    /// Texts next to edges, headings, and the legend.
    outside: Vec<Area>,
    arrows: usize,
}

fn number(node: &Node, name: &str) -> f64 {
    node.attribute(name).map_or(0.0, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
}

fn has(node: &Node, class: &str) -> bool {
    node.attribute("class").is_some_and(|classes| classes.split(' ').any(|it| it == class))
}

/// Returns the translation of an element by all its groups.
fn moved(node: &Node) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for transform in node.ancestors().filter_map(|it| it.attribute("transform")) {
        let inner = transform.strip_prefix("translate(").and_then(|it| it.strip_suffix(')')).expect("only moved");
        let (x, y) = inner.split_once(' ').expect("two numbers");
        sum = (sum.0 + x.parse::<f64>().unwrap(), sum.1 + y.parse::<f64>().unwrap());
    }
    sum
}

fn area(node: &Node) -> Area {
    let (x, y) = moved(node);
    let (x, y) = (x + number(node, "x"), y + number(node, "y"));
    let title = node.parent().and_then(|it| it.children().find(|child| child.has_tag_name("title")));
    let what = title.and_then(|it| it.text()).unwrap_or("frame").lines().next().unwrap_or_default().to_owned();
    let (width, height) = match node.attribute("points") {
        None => (number(node, "width"), number(node, "height")),
        Some(points) => points.split(' ').fold((0.0, 0.0), |(width, height): (f64, f64), point| {
            let (x, y) = point.split_once(',').unwrap();
            (width.max(x.parse().unwrap()), height.max(y.parse().unwrap()))
        }),
    };
    Area { what, left: x, top: y, right: x + width, bottom: y + height }
}

/// Returns the area of a text. The characters of the preferred fonts are 0.6 em wide, as in DejaVu, which is wide.
fn written(node: &Node) -> Area {
    let size = ["heading", "name", "label", "delay", "way", "key", "below"].iter().position(|class| has(node, class));
    let size = [14.0, 12.0, 10.5, 11.0, 9.0, 11.0, 10.0][size.expect("a class with a size")];
    let what = node.text().expect("a text").to_owned();
    let width = unicode_width::UnicodeWidthStr::width(what.as_str()) as f64 * size * 0.602;
    let (x, y) = moved(node);
    let (x, y) = (x + number(node, "x"), y + number(node, "y"));
    let left = if ["name", "below", "delay", "way"].iter().any(|class| has(node, class)) { x - width / 2.0 } else { x };
    Area { what, left, top: y - size * 0.8, right: left + width, bottom: y + size * 0.22 }
}

fn seen(svg: &str) -> Seen {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("no XML: {error}\n{svg}"));
    let mut seen = Seen::default();
    for node in document.root_element().descendants().filter(Node::is_element) {
        let parent = node.parent_element();
        let parent_is = |class: &str| parent.is_some_and(|it| has(&it, class));
        match node.tag_name().name() {
            "rect" if has(&node, "paper") => seen.page = Some(area(&node)),
            // A box of several objects is drawn with further boxes behind it.
            "rect" if has(&node, "behind") => {}
            "rect" | "polygon" if parent_is("pill") => seen.pills.push(area(&node)),
            "rect" | "polygon" => seen.boxes.push(area(&node)),
            "text" if parent_is("node") || parent_is("pill") => {
                let is_shape =
                    |it: &Node| (it.has_tag_name("rect") || it.has_tag_name("polygon")) && !has(it, "behind");
                let shape = parent.unwrap().children().find(is_shape).unwrap();
                seen.inside.push((written(&node), area(&shape)));
            }
            "text" => seen.outside.push(written(&node)),
            "path" if has(&node, "arrow") => seen.arrows += 1,
            _ => {}
        }
    }
    seen
}

/// Returns two overlapping elements, if any.
fn overlap(seen: &Seen) -> Option<(&Area, &Area)> {
    let mut apart: Vec<&Area> = seen.boxes.iter().chain(&seen.outside).collect();
    apart.sort_by(|one, other| one.left.total_cmp(&other.left));
    apart.iter().enumerate().find_map(|(index, one)| {
        let mut near = apart[index + 1..].iter().take_while(|other| other.left < one.right);
        near.find(|other| one.overlaps(other)).map(|other| (*one, *other))
    })
}

/// Fails if elements overlap or overflow.
#[track_caller]
fn is_tidy(name: &str, svg: &str) -> Seen {
    let seen = seen(svg);
    let page = seen.page.clone().expect("a page");
    for area in seen.boxes.iter().chain(&seen.outside).chain(&seen.pills) {
        assert!(area.is_within(&page), "{name}: {area:?} sticks out of {page:?}");
    }
    assert_eq!(overlap(&seen), None, "{name}: overlap");
    for (text, shape) in &seen.inside {
        assert!(text.is_within(shape), "{name}: {text:?} does not fit into {shape:?}");
    }
    for (index, pill) in seen.pills.iter().enumerate() {
        assert!(seen.boxes.iter().any(|frame| pill.is_within(frame)), "{name}: {pill:?} is in no frame");
        assert!(!seen.pills[index + 1..].iter().any(|other| pill.overlaps(other)), "{name}: {pill:?}");
    }
    seen
}

/// Returns all names in texts and tooltips.
fn names(svg: &str) -> BTreeSet<String> {
    let document = Document::parse(svg).unwrap();
    let titles = document.descendants().filter(|it| it.has_tag_name("title")).filter_map(|it| it.text());
    titles.flat_map(str::lines).map(|line| line.trim_start_matches("tier ").to_owned()).collect()
}

/// Draws a spec, folded and in full, and checks both graphs. Returns the number of boxes and labels.
#[track_caller]
fn looks_right(name: &str, spec: &str) -> usize {
    let topo = Topo::offline().file("topology.yaml", spec);
    let draw = |more: &[&str]| {
        let flags = ["graph", "--format", "svg"].into_iter().chain(more.iter().copied());
        topo.run(flags).expect_code(0).stdout
    };
    let (folded, all) = (draw(&[]), draw(&["--show", "all"]));
    assert_eq!(folded, draw(&[]), "{name}: not deterministic");
    let plan = topo.run(["plan", "--against", "empty", "--format", "json"]).expect_code(0).json();
    let (in_folded, in_all) = (names(&folded), names(&all));
    for vhost in plan["vhosts"].as_array().unwrap() {
        let desired = &vhost["desired"]["topology"];
        let keys = |kind: &str| desired[kind].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        for object in keys("queues").iter().chain(&keys("exchanges")) {
            assert!(in_all.contains(object), "{name}: `{object}` is not in the full graph");
        }
        for queue in keys("queues") {
            assert!(in_folded.contains(&queue), "{name}: `{queue}` is not in the graph");
        }
    }
    let (folded, all) = (is_tidy(name, &folded), is_tidy(&format!("{name}, in full"), &all));
    assert!(all.boxes.len() >= folded.boxes.len().min(1) && all.arrows + 8 >= folded.arrows, "{name}");
    folded.boxes.len() + folded.outside.len()
}

#[test]
fn every_example_is_drawn() {
    for (folder, spec) in examples() {
        let things = looks_right(&folder.display().to_string(), &spec);
        assert!(things > 4, "{}: {things}", folder.display());
    }
}

#[test]
fn every_realistic_topology_is_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint/realistic");
    let mut things = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        things += looks_right(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap());
    }
    assert!(things > 400, "{things}");
}

/// Elements with the same text overlap, too.
#[test]
fn overlaps_of_equal_texts_are_found() {
    let drawn = |more: &str| {
        seen(&format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg"><rect class="paper" width="99" height="99"/>
            <g class="node"><title>a</title><rect class="behind" x="4" y="4" width="40" height="20"/><rect width="40" height="20"/></g>
            <text class="label" x="10" y="40">#</text>{more}</svg>"##
        ))
    };
    assert_eq!(overlap(&drawn(r##"<text class="label" x="10" y="60">#</text>"##)), None);
    for more in [
        r##"<text class="label" x="12" y="42">#</text>"##,
        r##"<text class="label" x="12" y="14">a</text>"##,
        r##"<g class="node"><title>a</title><rect x="30" y="10" width="40" height="20"/></g>"##,
    ] {
        assert!(overlap(&drawn(more)).is_some(), "{more}");
    }
}

/// Returns the next pseudo-random number.
fn next(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap() % below
}

/// Returns a spec of teams, each with an exchange and different queues, and a stream that is bound to all exchanges.
/// This percentage of queues is also bound to the exchange of another team.
fn teams(queues: usize, teams: usize, across: usize) -> String {
    let mut seed = 7;
    let mut spec = "version: 1\nvhost: company\ndefaults: {queue: {type: quorum}}\nexchanges:\n".to_owned();
    let all = || 0..teams;
    all().for_each(|team| spec += &format!("  team{team}: {{type: topic}}\n"));
    let from_all: Vec<String> = all().map(|team| format!("{{exchange: team{team}, routingKey: '#'}}")).collect();
    spec += &format!("queues:\n  audit: {{type: stream, maxAge: 7D, bindings: [{}]}}\n", from_all.join(", "));
    for queue in 0..queues {
        let team = queue % teams;
        let retries = ["retry: {delays: [5s, 30s, 5m]}", "maxRetries: 3", "messageTtl: 1h", "retry: {delays: [1m]}"];
        let retries = retries[queue / teams % 4];
        let name = format!("team{team}.work-of-some-kind.{queue}");
        let other = if next(&mut seed, 100) < across { next(&mut seed, teams) } else { team };
        spec += &format!(
            "  {name}: {{{retries}, deadLetter: team{team}.dead, bindings: [{{exchange: team{team}, routingKey: 'a.{queue}.#'}}, \
             {{exchange: team{other}, routingKey: 'b.{queue}'}}]}}\n"
        );
    }
    spec += "deadLetterQueues:\n";
    all().for_each(|team| spec += &format!("  team{team}.dead: {{}}\n"));
    spec
}

/// Returns a spec of teams with exchanges for commands and events. Each service consumes up to three kinds of events of
/// any team.
fn services(count: usize, teams: usize) -> String {
    let mut seed = 11;
    let mut spec = "version: 1\nvhost: company\nexchanges:\n  unrouted: {type: fanout}\n".to_owned();
    for team in 0..teams {
        spec += &format!(
            "  team{team}.events: {{type: topic, alternateExchange: unrouted}}\n  team{team}.commands: {{type: direct}}\n"
        );
    }
    spec += "queues:\n  unrouted: {type: classic, bindings: [{exchange: unrouted}]}\n";
    for service in 0..count {
        let team = service % teams;
        let kinds = ["maxLength: 10000", "retry: {delays: [1m, 10m]}", "maxRetries: 3", "messageTtl: 1h"];
        let mut bindings = format!("{{exchange: team{team}.commands, routingKey: service{service}.handle}}");
        for _ in 0..next(&mut seed, 4) {
            let (other, event) = (next(&mut seed, teams), next(&mut seed, 1000));
            bindings += &format!(", {{exchange: team{other}.events, routingKey: 'entity{event}.created.#'}}");
        }
        spec += &format!(
            "  team{team}.service-{service}.inbox: {{type: quorum, {}, deadLetter: team{team}.dead, bindings: [{bindings}]}}\n",
            kinds[next(&mut seed, kinds.len())]
        );
    }
    spec += "deadLetterQueues:\n";
    (0..teams).for_each(|team| spec += &format!("  team{team}.dead: {{type: quorum}}\n"));
    spec
}

/// Returns a spec with one exchange to which all queues are bound, directly or over a separate exchange each.
fn fan(queues: usize, is_behind: bool) -> String {
    let mut spec = "version: 1\nvhost: fan\nexchanges:\n  hub: {type: fanout}\n".to_owned();
    for queue in (0..queues).filter(|_| is_behind) {
        spec += &format!("  end{queue}: {{type: fanout, bindings: [{{exchange: hub}}]}}\n");
    }
    spec += "queues:\n";
    for queue in 0..queues {
        let source = if is_behind { format!("end{queue}") } else { "hub".to_owned() };
        spec += &format!(
            "  end{queue}: {{type: quorum, messageTtl: {}s, deadLetter: dead, bindings: [{{exchange: {source}}}]}}\n",
            queue + 1
        );
    }
    spec + "deadLetterQueues: {dead: {type: quorum}}\n"
}

#[test]
fn fifty_queues_are_drawn_individually() {
    let spec = teams(50, 6, 4);
    looks_right("fifty", &spec);
    let svg = Topo::offline().file("topology.yaml", &spec).run(["graph", "--format", "svg"]).expect_code(0).stdout;
    let names = seen(&svg).inside;
    for queue in 0..50 {
        let name = format!("team{}.work-of-some-kind.{queue}", queue % 6);
        assert!(names.iter().any(|(text, _)| text.what == name), "{name}");
    }
}

/// The page is filled regardless of the bindings.
#[test]
fn many_queues_fill_a_page() {
    let mut drawn = Vec::new();
    for (queues, of_teams) in [(50, 6), (200, 12), (1000, 40)] {
        for across in [4, 10, 30] {
            drawn.push((queues, format!("{queues}, {across} % across"), teams(queues, of_teams, across)));
        }
        drawn.push((queues, format!("{queues} services"), services(queues, of_teams)));
    }
    drawn.push((600, "a fan".to_owned(), fan(600, false)));
    drawn.push((200, "a fan of fans".to_owned(), fan(200, true)));
    for (queues, name, spec) in drawn {
        let topo = Topo::offline().file("topology.yaml", &spec);
        let seen = is_tidy(&name, &topo.run(["graph", "--format", "svg"]).expect_code(0).stdout);
        let page = seen.page.unwrap();
        let ratio = page.right / page.bottom;
        assert!((0.3..4.0).contains(&ratio), "{name}: {page:?}");
        let area = page.right * page.bottom / queues as f64;
        assert!(area < 150_000.0, "{name}: {area} for each queue, {page:?}");
        // SVG renderers have a size limit.
        assert!(page.right.max(page.bottom) < 32_000.0, "{name}: {page:?}");
    }
}

#[test]
fn each_of_a_thousand_queues_is_found() {
    let topo = Topo::offline().file("topology.yaml", &teams(1000, 40, 4));
    let names = names(&topo.run(["graph", "--format", "svg"]).expect_code(0).stdout);
    for queue in 0..1000 {
        let name = format!("team{}.work-of-some-kind.{queue}", queue % 40);
        assert!(names.contains(&name), "{name}");
    }
    // A part of a name is sufficient.
    let focus = ["graph", "--format", "svg", "--focus", "team3.work-of-some-kind.43"];
    let near = self::names(&topo.run(focus).expect_code(0).stdout);
    assert!(near.contains("team3") && near.contains("team3.dead") && !near.contains("team4"), "{near:?}");
}

#[test]
fn similar_queues_share_a_box() {
    let mut spec = "version: 1\nvhost: v\nexchanges: {in: {type: direct}}\nqueues:\n".to_owned();
    for shard in 0..1000 {
        spec += &format!(
            "  shard.{shard}: {{type: quorum, deadLetter: dead.{shard}, bindings: [{{exchange: in, routingKey: '{shard}'}}]}}\n"
        );
    }
    spec += "deadLetterQueues:\n";
    (0..1000).for_each(|shard| spec += &format!("  dead.{shard}: {{type: quorum}}\n"));
    let topo = Topo::offline().file("topology.yaml", &spec);
    let svg = topo.run(["graph", "--format", "svg"]).expect_code(0).stdout;
    let seen = is_tidy("stacks", &svg);
    let boxes: BTreeSet<&str> = seen.boxes.iter().map(|area| area.what.as_str()).collect();
    assert_eq!(boxes, ["dead.0", "in", "shard.0"].into());
    assert!(seen.inside.iter().any(|(text, _)| text.what == "1,000 like shard.0"));
    assert!(names(&svg).contains("shard.999") && names(&svg).contains("dead.999"));
}
