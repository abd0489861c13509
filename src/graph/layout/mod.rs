//! Computes the positions of boxes and arrows in layers from left to right, with Sugiyama's method. The layout reserves
//! space for labels as well, so nothing overlaps a label. The layout is deterministic, and does not depend on the kinds
//! of objects.
//!
//! Unconnected parts are laid out separately and packed into columns.
//!
//! This is a custom implementation, because no maintained library is suitable. `rust-sugiyama` 0.4 does not expose
//! where an arrow passes through the layers between its ends, so arrows would cross boxes. `layout-rs` always draws the
//! graph itself, and its labels overlap.

mod layers;
mod place;
mod route;
#[cfg(test)]
mod tests;

pub use layers::{Point, Size, Wire};
pub use route::{Layout, Route};

/// The distance between parts.
const GAP: f64 = 34.0;
/// The distance below short parts, and between unconnected boxes.
const SMALL_GAP: f64 = 18.0;
/// The intended ratio of width to height.
const ASPECT: f64 = 1.5;

/// Computes the positions of boxes and wires.
pub fn arrange(boxes: &[Size], wires: &[Wire]) -> Layout {
    let (single, linked): (Vec<_>, Vec<_>) = parts(boxes.len(), wires).into_iter().partition(|part| part.len() == 1);
    let mut layouts: Vec<(Vec<usize>, Vec<usize>, Layout)> = Vec::new();
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); boxes.len()];
    for (number, wire) in wires.iter().enumerate() {
        outgoing[wire.from].push(number);
    }
    for part in linked {
        let mut numbers: Vec<usize> = part.iter().flat_map(|it| outgoing[*it].iter().copied()).collect();
        numbers.sort_unstable();
        let index_in_part = |id: usize| part.binary_search(&id).unwrap_or_default();
        let wire = |number: &usize| {
            let wire = wires[*number];
            Wire { from: index_in_part(wire.from), to: index_in_part(wire.to), label: wire.label }
        };
        let part_wires: Vec<Wire> = numbers.iter().map(wire).collect();
        let part_boxes: Vec<Size> = part.iter().map(|it| boxes[*it]).collect();
        let layout = lay_out(&part_boxes, &part_wires);
        layouts.push((part, numbers, layout));
    }
    let single: Vec<usize> = single.into_iter().flatten().collect();
    if !single.is_empty() {
        let widest = layouts.iter().map(|(_, _, layout)| layout.size.width).fold(0.0, f64::max);
        let layout = rows(&single.iter().map(|it| boxes[*it]).collect::<Vec<_>>(), widest);
        layouts.push((single, Vec::new(), layout));
    }
    let corners = pack(&layouts.iter().map(|(_, _, layout)| layout.size).collect::<Vec<_>>());
    let mut all = Layout {
        size: Size::default(),
        boxes: vec![Point::default(); boxes.len()],
        routes: vec![Route::default(); wires.len()],
    };
    for ((part, numbers, layout), corner) in layouts.into_iter().zip(corners) {
        let moved = |point: Point| Point { x: point.x + corner.x, y: point.y + corner.y };
        all.size.width = all.size.width.max(corner.x + layout.size.width);
        all.size.height = all.size.height.max(corner.y + layout.size.height);
        for (id, point) in part.into_iter().zip(layout.boxes) {
            all.boxes[id] = moved(point);
        }
        for (number, mut route) in numbers.into_iter().zip(layout.routes) {
            route.label = route.label.map(moved);
            for level in &mut route.levels {
                *level = (moved(level.0), moved(level.1));
            }
            all.routes[number] = route;
        }
    }
    all
}

/// Lays out one connected graph.
fn lay_out(boxes: &[Size], wires: &[Wire]) -> Layout {
    let is_reversed = layers::wires_to_reverse(boxes.len(), wires);
    let mut graph = layers::Layered::of(boxes, wires, &is_reversed);
    place::order(&mut graph);
    place::place(&mut graph);
    route::layout(&graph, boxes, wires, &is_reversed)
}

/// Returns the connected parts, each sorted by index.
fn parts(count: usize, wires: &[Wire]) -> Vec<Vec<usize>> {
    let mut others: Vec<Vec<usize>> = vec![Vec::new(); count];
    for wire in wires {
        others[wire.from].push(wire.to);
        others[wire.to].push(wire.from);
    }
    let mut is_seen = vec![false; count];
    let mut parts = Vec::new();
    for start in 0..count {
        let (mut part, mut open) = (Vec::new(), vec![start]);
        while let Some(index) = open.pop() {
            if !std::mem::replace(&mut is_seen[index], true) {
                part.push(index);
                open.extend(&others[index]);
            }
        }
        part.sort_unstable();
        parts.extend((!part.is_empty()).then_some(part));
    }
    parts
}

/// Places unconnected boxes in rows. The maximum row width is the width of the widest part, or the width of a page with
/// only these boxes if that page is wider.
fn rows(sizes: &[Size], widest: f64) -> Layout {
    let cell = sizes.iter().map(|size| size.width).fold(0.0, f64::max) + SMALL_GAP;
    let area: f64 = sizes.iter().map(|size| cell * (size.height + SMALL_GAP)).sum();
    let width = widest.max((area * ASPECT).sqrt());
    let mut layout = Layout::default();
    let mut corner = Point::default();
    for size in sizes {
        if corner.x > 0.0 && corner.x + cell > width + SMALL_GAP {
            corner = Point { x: 0.0, y: layout.size.height + SMALL_GAP };
        }
        layout.boxes.push(corner);
        layout.size.width = layout.size.width.max(corner.x + size.width);
        layout.size.height = layout.size.height.max(corner.y + size.height);
        corner.x += cell;
    }
    layout
}

/// The candidate heights of a page, in tenths of the minimum height. The minimum height is computed from the total area
/// and the tallest of the parts. Without taller pages, a few tall parts would form one long row.
const PAGE_HEIGHTS: std::ops::RangeInclusive<u32> = 10..=22;

/// Returns the corners of the parts on the page whose aspect ratio is closest to [`ASPECT`].
fn pack(sizes: &[Size]) -> Vec<Point> {
    let area: f64 = sizes.iter().map(|size| (size.width + GAP) * (size.height + GAP)).sum();
    let tallest = sizes.iter().map(|size| size.height).fold(0.0, f64::max);
    let height = (area / ASPECT).sqrt().max(tallest) * 1.02;
    let pages = PAGE_HEIGHTS.map(|tenths| columns(sizes, height * f64::from(tenths) / 10.0));
    let deviation = |page: &(Vec<Point>, Size)| (page.1.width / page.1.height / ASPECT).ln().abs();
    pages.min_by(|one, other| deviation(one).total_cmp(&deviation(other))).map(|page| page.0).unwrap_or_default()
}

/// Packs the parts into columns, the widest parts first. Puts each part into the first column with sufficient room, so
/// the parts in a column have similar widths.
fn columns(sizes: &[Size], height: f64) -> (Vec<Point>, Size) {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|one, other| sizes[*other].width.total_cmp(&sizes[*one].width));
    let (mut corners, mut page) = (vec![Point::default(); sizes.len()], Size::default());
    // The left edge and the filled height of each column.
    let mut columns: Vec<(f64, f64)> = Vec::new();
    let mut right = 0.0;
    for part in order {
        let size = sizes[part];
        let column = match columns.iter().position(|column| column.1 + size.height <= height) {
            Some(column) => column,
            None => {
                columns.push((right, 0.0));
                right += size.width + GAP;
                columns.len() - 1
            }
        };
        corners[part] = Point { x: columns[column].0, y: columns[column].1 };
        page.width = page.width.max(columns[column].0 + size.width);
        page.height = page.height.max(columns[column].1 + size.height);
        columns[column].1 += size.height + if size.height < 60.0 { SMALL_GAP } else { GAP };
    }
    (corners, page)
}
