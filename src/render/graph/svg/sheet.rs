//! Writes the style sheet for light and dark pages, and the arrowheads.

use super::lines;
use crate::graph::{ArrowKind, Graph};
use crate::render::graph::palette::{self, PAINTS, UNCHANGED};
use std::collections::BTreeSet;
use std::fmt::Write;

const SHAPES: &str = "\
.topo text{fill:#57606a;font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:10px}
.topo .heading{fill:#24292f;font-size:14px;font-weight:600}
.topo .key{font-size:11px}
.topo .name,.topo .label,.topo .delay{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
.topo .name{font-size:12px;font-weight:600;text-anchor:middle}
.topo .below,.topo .delay,.topo .way{text-anchor:middle}
.topo .delay{font-size:11px}
.topo .label{font-size:10.5px}
.topo .way{font-size:9px}
.topo rect,.topo polygon{stroke-width:1.3}
.topo .inner,.topo .then{fill:none;stroke-width:1}
.topo .dashed rect,.topo .dashed polygon{stroke-dasharray:4 3}
.topo .frame{fill:none;stroke-dasharray:2 3}
.topo .arrow{stroke-width:1.4}
.topo path.arrow{fill:none}
.topo text.arrow{stroke:none}
";

/// The colors of boxes on a dark page, by class: background, border, text.
const DARK: [(&str, &str, &str, &str); 12] = [
    ("exchange", "#14263f", "#5b93e0", "#cfe1fb"),
    ("queue", "#13291a", "#55b070", "#cdeed7"),
    ("stream", "#0d2b2f", "#48aab5", "#c6ecf0"),
    ("tier", "#33260c", "#d9a441", "#f7e3bd"),
    ("dead", "#351714", "#e0685e", "#fbd5d1"),
    ("foreign", "#1f2329", "#7d8590", "#c9d1d9"),
    ("unchanged", "#1b1f25", "#59626d", "#aab3bd"),
    ("created", "#0f2f1a", "#3fb950", "#c8f2d2"),
    ("changed", "#332900", "#d9a800", "#f7e9b0"),
    ("recreated", "#231b47", "#a492f0", "#e3dcff"),
    ("deleted", "#3a1214", "#f85149", "#ffd9d6"),
    ("conflict", "#3a0b27", "#e0559f", "#ffd3ea"),
];

/// The colors of arrows on a dark page, by class.
const DARK_ARROWS: [(&str, &str); 4] =
    [("binding", "#9aa7b8"), ("alternate", "#b392f0"), ("retry", "#d9a441"), ("dead-letter", "#f0776d")];

/// Writes the style sheet, and the arrowheads of the drawn arrows.
pub(super) fn sheet(graph: &Graph) -> String {
    let mut text = format!("<style>\n{SHAPES}");
    for kind in ArrowKind::ALL {
        let stroke = palette::of_arrow(kind);
        let _ = writeln!(text, ".topo path.{}{{stroke-dasharray:{}}}", stroke.class, or_none(stroke.dashes));
    }
    text.push_str(".topo .paper{fill:#ffffff;stroke:none}\n");
    for kind in ArrowKind::ALL {
        arrow(&mut text, palette::of_arrow(kind).class, palette::of_arrow(kind).color);
    }
    for paint in PAINTS {
        node(&mut text, paint.class, (paint.fill, paint.stroke, paint.ink));
    }
    text.push_str("@media (prefers-color-scheme:dark){\n");
    text.push_str(".topo .paper{fill:#0d1117}\n.topo text{fill:#9da7b3}\n.topo .heading{fill:#e6edf3}\n");
    for (class, color) in DARK_ARROWS {
        arrow(&mut text, class, color);
    }
    for (class, fill, stroke, ink) in DARK {
        node(&mut text, class, (fill, stroke, ink));
    }
    text.push_str("}\n</style>\n<defs>\n");
    let of_retries = |node: &crate::graph::Node| node.retries.as_ref().map(|retries| (ArrowKind::Retry, retries.mark));
    let drawn = graph.vhosts.iter().flat_map(|vhost| {
        let arrows = vhost.arrows.iter().map(|arrow| (arrow.kind, arrow.mark));
        arrows.chain(vhost.nodes.iter().filter_map(of_retries))
    });
    let all = drawn.chain(graph.vhosts.iter().flat_map(lines::kinds).map(|kind| (kind, None)));
    let heads: BTreeSet<String> = all.map(|(kind, mark)| lines::head(kind, mark, graph.is_plan)).collect();
    for head in heads {
        let _ = writeln!(
            text,
            r#"<marker id="{head}" class="{head}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 .8L8 4L0 7.2z"/></marker>"#
        );
    }
    text.push_str("</defs>\n");
    text
}

fn or_none(dashes: &str) -> &str {
    if dashes.is_empty() { "none" } else { dashes }
}

fn arrow(text: &mut String, class: &str, color: &str) {
    let _ = writeln!(text, ".topo path.{class}{{stroke:{color}}}");
    let _ = writeln!(text, ".topo text.{class},.topo .topo-{class} path{{fill:{color}}}");
}

fn node(text: &mut String, class: &str, (fill, stroke, ink): (&str, &str, &str)) {
    let shapes = ["rect", "polygon"].map(|shape| format!(".topo .{class}>{shape}")).join(",");
    let _ = writeln!(text, "{shapes},.topo rect.{class}{{fill:{fill};stroke:{stroke}}}");
    let _ = writeln!(text, ".topo .{class}>.frame{{fill:none}}");
    let _ = writeln!(text, ".topo .{class}>.inner,.topo .{class}>.then,.topo path.to-be-{class}{{stroke:{stroke}}}");
    let _ = writeln!(text, ".topo .{class}>text{{fill:{ink}}}");
    // Unchanged arrows are faint, but their labels must be readable.
    let label = if class == UNCHANGED.class { ink } else { stroke };
    let _ = writeln!(text, ".topo text.to-be-{class}{{fill:{label}}}\n.topo .topo-{class} path{{fill:{stroke}}}");
}
