//! Tests properties of the layout with random graphs and with small fixed graphs.

use super::*;

/// Returns the next pseudorandom number.
fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap()
}

fn random_graph(seed: u64) -> (Vec<Size>, Vec<Wire>) {
    let mut seed = seed;
    let count = 1 + next(&mut seed) % 40;
    let size =
        |seed: &mut u64| Size { width: 40.0 + (next(seed) % 200) as f64, height: 20.0 + (next(seed) % 60) as f64 };
    let boxes: Vec<Size> = (0..count).map(|_| size(&mut seed)).collect();
    let mut wires = Vec::new();
    for _ in 0..next(&mut seed) % (2 * count) {
        let (from, to) = (next(&mut seed) % count, next(&mut seed) % count);
        let label = (!next(&mut seed).is_multiple_of(3)).then(|| size(&mut seed));
        if from != to {
            wires.push(Wire { from, to, label });
        }
    }
    (boxes, wires)
}

type Area = (Point, Size);

fn areas(boxes: &[Size], wires: &[Wire], layout: &Layout) -> Vec<Area> {
    let boxes = layout.boxes.iter().copied().zip(boxes.iter().copied());
    let labels = layout.routes.iter().zip(wires).filter_map(|(route, wire)| route.label.zip(wire.label));
    boxes.chain(labels).collect()
}

fn overlap((one, one_size): &Area, (other, other_size): &Area) -> bool {
    let tolerance = 0.5;
    one.x + one_size.width > other.x + tolerance
        && other.x + other_size.width > one.x + tolerance
        && one.y + one_size.height > other.y + tolerance
        && other.y + other_size.height > one.y + tolerance
}

#[test]
fn boxes_and_labels_are_within_the_layout_and_do_not_overlap() {
    let mut labels = 0;
    for seed in 0..300 {
        let (boxes, wires) = random_graph(seed);
        let layout = arrange(&boxes, &wires);
        assert_eq!(layout, arrange(&boxes, &wires), "{seed}: the layout is not deterministic");
        let areas = areas(&boxes, &wires, &layout);
        labels += areas.len() - boxes.len();
        assert_eq!(areas.len(), boxes.len() + wires.iter().filter(|wire| wire.label.is_some()).count(), "{seed}");
        for (index, area) in areas.iter().enumerate() {
            let (corner, size) = area;
            assert!(corner.x >= -0.01 && corner.y >= -0.01, "{seed}: {area:?}");
            assert!(corner.x + size.width <= layout.size.width + 0.01, "{seed}: {area:?} in {:?}", layout.size);
            assert!(corner.y + size.height <= layout.size.height + 0.01, "{seed}: {area:?} in {:?}", layout.size);
            let other = areas[index + 1..].iter().find(|other| overlap(area, other));
            assert_eq!(other, None, "{seed}: overlaps {area:?}");
        }
    }
    assert!(labels > 1000, "{labels}");
}

/// The horizontal lines of a wire do not cross any box, or the label of any other wire. The curves are between columns,
/// where there are no boxes or labels.
#[test]
fn wires_pass_between_boxes() {
    let mut levels = 0;
    for seed in 0..300 {
        let (boxes, wires) = random_graph(seed);
        let layout = arrange(&boxes, &wires);
        let areas = areas(&boxes, &wires, &layout);
        for (route, wire) in layout.routes.iter().zip(&wires) {
            let (first, last) = (route.levels[0].0, route.levels[route.levels.len() - 1].1);
            for (end, index) in [(first, wire.from), (last, wire.to)] {
                let (corner, size) = (layout.boxes[index], boxes[index]);
                let is_at_edge = (end.x - corner.x).abs() < 0.01 || (end.x - corner.x - size.width).abs() < 0.01;
                assert!(is_at_edge && end.y >= corner.y && end.y <= corner.y + size.height, "{seed}: {wire:?} {end:?}");
            }
            for (from, to) in &route.levels {
                let line =
                    (Point { x: from.x.min(to.x), y: from.y }, Size { width: (to.x - from.x).abs(), height: 0.0 });
                let own = route.label;
                let crossed = areas.iter().find(|area| Some(area.0) != own && overlap(&line, area));
                assert_eq!(crossed, None, "{seed}: {wire:?} crosses a box or a label");
                levels += 1;
            }
        }
    }
    assert!(levels > 5000, "{levels}");
}

fn square(count: usize) -> Vec<Size> {
    vec![Size { width: 10.0, height: 10.0 }; count]
}

fn wire(from: usize, to: usize) -> Wire {
    Wire { from, to, label: None }
}

#[test]
fn chain_is_a_horizontal_row_from_left_to_right() {
    let layout = arrange(&square(4), &[wire(2, 0), wire(0, 3), wire(3, 1)]);
    let row: Vec<Point> = [2, 0, 3, 1].iter().map(|index| layout.boxes[*index]).collect();
    assert!(row.windows(2).all(|pair| pair[0].x < pair[1].x && (pair[0].y - pair[1].y).abs() < 0.01), "{row:?}");
}

#[test]
fn cycle_has_one_wire_that_points_left() {
    let wires = [wire(0, 1), wire(1, 2), wire(2, 0)];
    let layout = arrange(&square(3), &wires);
    let is_back = |wire: &&Wire| layout.boxes[wire.to].x < layout.boxes[wire.from].x;
    assert_eq!(wires.iter().filter(is_back).collect::<Vec<_>>(), [&wires[2]]);
    // The reversed wire keeps its original start and end.
    let back = &layout.routes[2].levels;
    assert!(back[0].0.x > back[back.len() - 1].1.x);
}

#[test]
fn avoidable_crossings_are_avoided() {
    let wires = [wire(0, 3), wire(1, 2), wire(0, 2), wire(1, 4)];
    let layout = arrange(&square(5), &wires);
    for (index, one) in wires.iter().enumerate() {
        for other in &wires[index + 1..] {
            let y = |index: usize| layout.boxes[index].y;
            let product = (y(one.from) - y(other.from)) * (y(one.to) - y(other.to));
            assert!(product >= 0.0, "{one:?} crosses {other:?}");
        }
    }
}

#[test]
fn source_is_close_to_its_destination() {
    // Box 4 has a wire only to box 3, which is the last of four boxes in a row.
    let layout = arrange(&square(5), &[wire(0, 1), wire(1, 2), wire(2, 3), wire(4, 3)]);
    assert!((layout.boxes[4].x - layout.boxes[2].x).abs() < 0.01);
}

#[test]
fn unconnected_boxes_fill_a_page() {
    let layout = arrange(&square(400), &[]);
    let ratio = layout.size.width / layout.size.height;
    assert!((0.8..2.5).contains(&ratio), "{:?}", layout.size);
}
