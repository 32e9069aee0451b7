import { createHash } from 'node:crypto'
import { formatPolicy } from '../pages/html.js'
import { PAGE_STYLE } from '../pages/page-style.js'

const OWN_STYLE = `
.console { padding: 0 0 3rem; --good: #1a7f37; --warn: #8a5a00; --fade: #0003 }
@media (prefers-color-scheme: dark) { .console { --good: #57c878; --warn: #e3b341; --fade: #000c } }
.skip { position: absolute; inset-inline-start: .5rem; top: -4rem; padding: .5rem 1rem; background: var(--card); border: 2px solid var(--link); border-radius: .5rem }
.skip:focus { top: .5rem; z-index: 1 }
.bar { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; align-items: center; padding: .6rem clamp(.75rem, 3vw, 2rem); background: var(--card);
  border-bottom: 1px solid var(--line) }
.bar a.home { display: inline-flex; align-items: center; gap: .5rem; min-height: 2rem; color: var(--ink); font-weight: 600; text-decoration: none; overflow-wrap: anywhere }
.bar form { display: flex; flex-wrap: wrap; gap: .25rem .75rem; align-items: center; margin-inline-start: auto }
.bar .small { overflow-wrap: anywhere }
.console button { min-height: 2.25rem; padding: .25rem .9rem }
.console button.danger { border-color: var(--wrong); background: none; color: var(--wrong) }
.sections { margin: 0; padding: .5rem clamp(.75rem, 3vw, 2rem); display: grid; gap: .35rem; border-top: 0; border-bottom: 1px solid var(--line) }
.sections > div { min-width: 0 }
.sections p { margin: 0; font-size: .8rem; font-weight: 600; color: var(--soft) }
.sections ul { display: flex; flex-wrap: wrap; gap: .25rem .35rem; margin: 0; padding: 0; list-style: none }
.sections a { padding: .2rem .6rem; border-radius: .4rem; color: var(--ink); text-decoration: none }
.sections a:hover { text-decoration: underline }
.sections a[aria-current] { background: var(--button); color: #fff }
@media (max-width: 40rem) {
  .sections ul { flex-wrap: nowrap; overflow-x: auto; scrollbar-width: none; white-space: nowrap }
  .sections li:has(a[aria-current]) { scroll-initial-target: nearest }
}
@media (min-width: 40rem) { .sections > div { display: grid; grid-template-columns: 6rem 1fr; align-items: baseline } }
.console main { max-width: 76rem; padding: 1.25rem clamp(.75rem, 3vw, 2rem) 0; display: grid; gap: 1rem }
.console main > * { min-width: 0; margin: 0 }
.console main .card { padding: clamp(.9rem, 3vw, 1.3rem) }
.console main .card > :first-child { margin-top: 0 }
.console main:focus { outline: none }
.scroll { overflow-x: auto; margin-top: .75rem; background:
  linear-gradient(to right, var(--card) 40%, transparent) left / 2rem 100% no-repeat local,
  linear-gradient(to left, var(--card) 40%, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(to right, var(--fade), transparent) left / 1rem 100% no-repeat,
  linear-gradient(to left, var(--fade), transparent) right / 1rem 100% no-repeat }
.scroll:focus-visible { outline: 3px solid var(--link); outline-offset: 2px }
.scroll table { width: 100%; border-collapse: collapse; font-size: .9375rem }
.scroll caption { max-width: calc(100vw - 4.5rem); padding-bottom: .35rem; text-align: start; color: var(--soft); font-size: .875rem }
.scroll :is(th, td) { padding: .4rem .45rem; border-bottom: 1px solid var(--line); text-align: start; vertical-align: top; white-space: nowrap }
.scroll :is(th, td).wide { white-space: normal; min-width: 14rem; overflow-wrap: anywhere }
.scroll :is(th, td).number { text-align: end; font-variant-numeric: tabular-nums }
.scroll thead th { white-space: normal; vertical-align: bottom }
.scroll .pair { display: inline-grid }
.scroll tbody th { font-weight: 600 }
.scroll td a, .scroll th a, .list a { display: inline-block; min-height: 1.5rem; min-width: 1.5rem }
.state { font-weight: 600 }
.state.good { color: var(--good) }
.state.warn { color: var(--warn) }
.state.bad { color: var(--wrong) }
.notice { padding: .6rem 1rem; border: 1px solid var(--good); border-inline-start-width: 5px; border-radius: .5rem }
.warnings { margin: .5rem 0 0; padding-inline-start: 1.2rem }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; margin: .75rem 0 0; padding: 0; list-style: none }
.tiles li { padding: .7rem .9rem; border: 1px solid var(--line); border-radius: .6rem }
.tiles b { display: block; font-size: 1.4rem; line-height: 1.3; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
.filters { display: flex; flex-wrap: wrap; gap: .75rem; align-items: end; margin-top: .75rem }
.filters label, .entry label { display: grid; gap: .2rem; font-size: .9rem; font-weight: 600; min-width: 0 }
.entry { display: grid; gap: .75rem; margin-top: .75rem; max-width: 34rem; justify-items: start }
.filters details { flex-basis: 100% }
.entry label { width: 100% }
.entry > * { min-width: 0; max-width: 100% }
.entry:has(table) { max-width: none }
.entry > label { max-width: 34rem }
.entry > .scroll { width: 100% }
.console fieldset { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; min-width: 0; width: 100%; margin: 0; padding: .5rem .75rem; border: 1px solid var(--line); border-radius: .5rem }
.console fieldset label { width: auto }
.console legend { padding: 0 .25rem; font-size: .9rem; font-weight: 600 }
.scroll label.choice { display: inline-flex; gap: .5rem; align-items: center; white-space: nowrap }
.entry .choice { display: flex; gap: .5rem; align-items: start; font-weight: 400; min-height: 1.5rem }
.console :is(input, select, textarea) { min-height: 2.25rem; padding: .3rem .6rem }
.console input[type=checkbox] { width: 1.5rem; min-height: 1.5rem; flex: none; margin: 0 }
.console :is(select, textarea) { width: 100%; border: 1px solid var(--edge); border-radius: .5rem; background: var(--card); color: inherit; font: inherit }
.console :is(select, textarea):focus-visible { outline: 3px solid var(--link); outline-offset: 2px }
.choices { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(16rem, 100%), 1fr)); gap: 1rem 2rem; margin-top: 1rem }
.choices h2 { margin-top: 0 }
.buttons { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: .75rem }
.console pre { margin: .75rem 0 0; padding: .75rem; border: 1px solid var(--line); border-radius: .5rem; white-space: pre-wrap; overflow-wrap: anywhere;
  direction: ltr; unicode-bidi: isolate; text-align: left; font-size: .875rem }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem }
.chart { margin: 0; min-width: 0 }
.chart svg { display: block; width: 100%; height: auto; margin-top: .35rem }
.chart figcaption { font-weight: 600 }
.chart .line { fill: none; stroke: var(--link); stroke-width: 2; vector-effect: non-scaling-stroke }
.chart .area { fill: var(--link); fill-opacity: .14 }
.chart .line.second { stroke: var(--warn); stroke-dasharray: 5 3 }
.chart .key { display: inline-block; width: 1.5rem; margin-inline-end: .4rem; vertical-align: middle; border-top: 2px solid var(--link) }
.chart .key.second { border-top: 2px dashed var(--warn) }
.chart .axis { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke }
.chart text { fill: var(--soft); font-size: 12px }
.evidence { margin-top: .75rem; padding: .75rem .9rem; border: 1px solid var(--line); border-radius: .5rem; white-space: pre-wrap; overflow-wrap: anywhere;
  unicode-bidi: plaintext; max-height: 30rem; overflow-y: auto }
.history { margin: .75rem 0 0; padding: 0; list-style: none }
.history li { padding: .4rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere }
.console dl { gap: .3rem 1.25rem }
@media (max-width: 40rem) { .console dl { grid-template-columns: minmax(0, 2fr) minmax(0, 3fr) } }
`

export const CONSOLE_STYLE = PAGE_STYLE + OWN_STYLE

/** The policy of console pages: no scripts, nothing from other hosts, forms only to this pod. */
export const CONSOLE_POLICY = formatPolicy({
  'default-src': "'none'",
  'style-src': `'sha256-${createHash('sha256').update(CONSOLE_STYLE).digest('base64')}'`,
  'img-src': "'self'",
  'form-action': "'self'",
  'frame-ancestors': "'none'",
  'base-uri': "'none'",
})
