/** The style of all pages: light and dark, from 320 px upwards, in either direction of text. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --ink: #1c2128; --soft: #57606a; --paper: #f3f5f7; --card: #fff; --line: #d8dee4; --edge: #7d8590; --link: #0b5cad;
  --button: #0b5cad; --wrong: #b3261e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9da7b3; --paper: #14181d; --card: #1c2128; --line: #343c46; --edge: #7f8a96; --link: #7ab7ff;
    --button: #2368b4; --wrong: #ff8a80 }
}
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; padding: 1rem clamp(.75rem, 4vw, 2rem) 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif }
.site, main { width: 100%; margin: 0 auto }
.site { margin-bottom: 1rem }
.site a { display: inline-flex; align-items: center; gap: .6rem; min-height: 2rem; max-width: 100%; color: var(--ink); font-weight: 600;
  text-decoration: none; overflow-wrap: anywhere }
.site a:hover, .site a[aria-current] { text-decoration: underline }
main nav a[aria-current] { color: var(--ink); font-weight: 600; text-decoration: none }
.site img { flex: none; border-radius: .35rem }
.column .site, .column main { max-width: 42rem }
.column main { display: grid; gap: 1rem }
.column main > * { min-width: 0; margin-top: 0; margin-bottom: 0 }
.single .site, .single main { max-width: 32rem }
main .card, .single main { padding: clamp(1.1rem, 4vw, 1.6rem); background: var(--card); border: 1px solid var(--line); border-radius: .75rem }
.single main { margin-top: clamp(0rem, 8vh, 5rem); padding: clamp(1.25rem, 5vw, 2.25rem) }
.site + main { margin-top: 0 }
@media (min-width: 40rem) { body.single { padding-top: clamp(1rem, 8vh, 5rem) } .single main { margin-top: 0 } }
.for-readers { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
h1, h2 { line-height: 1.25; overflow-wrap: anywhere }
h1 { margin: 0 0 .25rem; font-size: 1.6rem }
h2 { margin: 1.5rem 0 .25rem; font-size: 1.15rem }
main .card > h2:first-child { margin-top: 0 }
.list-title { padding: .5rem .25rem 0; font-size: 1.15rem }
p { margin: .75rem 0 0; overflow-wrap: anywhere }
main > p:first-child { margin-top: 0 }
.soft { color: var(--soft) }
.small { font-size: .875rem }
.wrong { color: var(--wrong) }
code { padding: .1rem .3rem; border: 1px solid var(--line); border-radius: .3rem; font-size: .9em; overflow-wrap: anywhere;
  direction: ltr; unicode-bidi: isolate }
a { color: var(--link) }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; margin-top: 1.5rem; padding-top: 1rem; border-top: 1px solid var(--line) }
nav a, .by a { display: inline-block; min-width: 1.5rem; min-height: 1.5rem }
nav a { padding: .25rem 0 }
.pages { gap: .25rem 1.5rem; margin-top: 1rem }
.column main > .pages { padding: 0 .25rem; border-top: 0 }
.by { display: flex; gap: .85rem; align-items: center }
.by > div { min-width: 0 }
.by p { margin: 0; line-height: 1.5rem; overflow-wrap: anywhere }
.by b a, .by b { color: var(--ink); text-decoration: none }
.by b a:hover, a.soft:hover { text-decoration: underline }
a.soft { text-decoration: none }
.face { flex: none; display: grid; place-items: center; width: 3rem; height: 3rem; border-radius: 50%; object-fit: cover;
  background: var(--line); color: var(--ink); font-weight: 600; text-transform: uppercase }
.face.large { width: 5.5rem; height: 5.5rem; font-size: 2rem }
.profile p { margin-top: .35rem }
.text { margin-top: 1rem; overflow-wrap: anywhere }
.text > :first-child { margin-top: 0 }
.text :is(p, li, h2, h3, h4, h5, h6) { unicode-bidi: plaintext; text-align: start }
.text :is(h2, h3, h4, h5, h6) { margin: 1.25rem 0 .25rem; line-height: 1.3 }
.text h2 { font-size: 1.3rem }
.text h3 { font-size: 1.15rem }
.text :is(h4, h5, h6) { font-size: 1rem }
.text :is(ul, ol) { margin: .75rem 0 0; padding-inline-start: 1.4rem }
.text pre { margin: .75rem 0 0; padding: .75rem .9rem; background: var(--paper); border: 1px solid var(--line); border-radius: .5rem;
  white-space: pre-wrap; direction: ltr; unicode-bidi: isolate; text-align: left }
.text pre code { padding: 0; border: 0 }
.text hr { margin: 1.25rem 0; border: 0; border-top: 1px solid var(--line) }
.text blockquote { margin: .75rem 0 0; padding-inline-start: 1rem; border-inline-start: 3px solid var(--edge); color: var(--soft) }
.text blockquote:has(> :first-child:dir(rtl)) { direction: rtl }
.text blockquote > :first-child { margin-top: 0 }
.text img { max-width: 100%; height: auto }
.text table { display: block; max-width: 100%; margin: .75rem 0 0; overflow-x: auto; border-collapse: collapse }
.text th, .text td { padding: .25rem .6rem; border: 1px solid var(--line); text-align: start }
.tag { color: var(--link) }
.photos { display: grid; gap: .5rem; margin-top: 1rem }
.photos a { display: block; min-height: 1.5rem }
.photos img { display: block; max-width: 100%; height: auto; border-radius: .5rem }
.inner { margin-top: 1rem; padding: 1rem 1.1rem; border: 1px solid var(--line); border-radius: .6rem }
.inner > :first-child { margin-top: 0 }
.comment { margin-top: 1.25rem; padding-top: 1.25rem; border-top: 1px solid var(--line) }
.comment:target { border-top: 3px solid var(--link) }
.comment .text { margin-top: .5rem }
:is(.inner, .comment) .face { width: 2.5rem; height: 2.5rem }
.poll { margin: 1rem 0 0; padding: 0; list-style: none; display: grid; gap: .6rem }
.poll div { display: flex; justify-content: space-between; gap: 1rem; overflow-wrap: anywhere }
.poll div .soft { flex: none }
.poll meter { width: 100% }
summary { min-height: 1.5rem; cursor: pointer; color: var(--link) }
details[open] summary { margin-bottom: .75rem }
main .card > details { margin-top: .75rem }
.foot { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin-top: 1rem; padding-top: .75rem; border-top: 1px solid var(--line) }
form.foot { align-items: end }
form.foot .field { margin-top: 0 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 1rem 0 0 }
dt { color: var(--soft) }
dd { margin: 0; min-width: 0; overflow-wrap: anywhere }
.field { display: grid; gap: .3rem; margin-top: 1.25rem }
.field label { font-weight: 600 }
:is(input, select, textarea) { width: 100%; min-height: 2.75rem; padding: .5rem .75rem; border: 1px solid var(--edge); border-radius: .5rem; background: var(--card);
  color: inherit; font: inherit }
:is(input, select, textarea)[aria-invalid] { border: 2px solid var(--wrong) }
textarea { resize: vertical }
:is(input[type="checkbox"], input[type="radio"]) { width: 1.5rem; height: 1.5rem; min-height: 0; flex: none; margin: 0 }
.check { display: flex; flex-wrap: wrap; gap: .25rem .6rem; align-items: center; margin-top: 1rem }
.check label { flex: 1; min-width: 60% }
.check .small { flex-basis: 100% }
fieldset { margin: 1.25rem 0 0; padding: 0; border: 0; min-width: 0 }
legend { padding: 0; font-weight: 600 }
.notice { margin: 0; padding: .7rem 1rem; background: var(--card); border: 1px solid var(--link); border-inline-start-width: 5px; border-radius: .5rem }
.entries { margin: .75rem 0 0; padding: 0; list-style: none }
.entries > li { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between; padding: .75rem 0;
  border-top: 1px solid var(--line) }
.entries > li > div { flex: 1; min-width: min(100%, 14rem); overflow-wrap: anywhere }
.entries p { margin: 0 }
.codes { columns: 2; column-gap: 1.5rem; margin: .75rem 0 0; padding-inline-start: 1.5rem }
.qr { display: block; width: 14rem; max-width: 100%; height: auto; margin: 1rem 0 0; background: #fff; border-radius: .5rem }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.5rem }
button, .button { min-height: 2.75rem; padding: .5rem 1.3rem; border: 1px solid var(--button); border-radius: .5rem; background: var(--button);
  color: #fff; font: inherit; font-weight: 600; text-decoration: none; overflow-wrap: anywhere; cursor: pointer }
:is(button, .button):hover { text-decoration: underline }
:is(button, .button).quiet { border-color: var(--edge); background: none; color: var(--ink) }
:is(a, button, input, select, textarea, summary):focus-visible { outline: 3px solid var(--link); outline-offset: 2px }
.alert { margin-top: 1rem; padding: .7rem 1rem; border: 1px solid var(--wrong); border-inline-start-width: 5px; border-radius: .5rem }
.alert h2 { margin: 0; font-size: 1rem }
.alert ul { margin: .4rem 0 0; padding-inline-start: 1.2rem }
.alert li { padding: .1rem 0 }
.alert p { margin-top: .4rem }
.scopes, .steps { margin: .75rem 0 0; padding-inline-start: 1.25rem }
.scopes li { margin-top: .25rem }
.steps li { margin-top: .6rem }
`
