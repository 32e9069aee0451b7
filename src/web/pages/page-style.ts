/** The one style of all pages: light and dark, from the width of a phone upwards, without a file of its own to load. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --ink: #1c2128; --soft: #57606a; --paper: #f6f7f9; --card: #fff; --line: #d8dee4; --edge: #848d97; --link: #0b5cad;
  --button: #0b5cad; --wrong: #b3261e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9da7b3; --paper: #14181d; --card: #1c2128; --line: #343c46; --edge: #717b86; --link: #7ab7ff;
    --button: #2368b4; --wrong: #f2776d }
}
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.6 system-ui, sans-serif }
main { max-width: 34rem; width: 100%; padding: 2rem 2.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem }
.for-readers { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
h1 { margin: 0 0 .25rem; font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere }
p { margin: .75rem 0 0; overflow-wrap: anywhere }
.soft { color: var(--soft) }
code { padding: .1rem .3rem; border: 1px solid var(--line); border-radius: .3rem; font-size: .9em; overflow-wrap: anywhere }
nav { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; margin-top: 1.5rem; padding-top: 1.25rem; border-top: 1px solid var(--line) }
a { color: var(--link) }
body.wide { display: block; place-items: normal; padding: 1rem clamp(.75rem, 4vw, 2rem) 3rem }
.wide main { display: grid; gap: 1rem; max-width: 42rem; margin: 0 auto; padding: 0; background: none; border: 0 }
.wide main > * { min-width: 0 }
.site { max-width: 42rem; margin: 0 auto 1rem }
.site a { color: var(--soft); font-weight: 600; text-decoration: none }
.card { padding: 1.25rem 1.4rem; background: var(--card); border: 1px solid var(--line); border-radius: .75rem }
.card h2 { margin: 0; font-size: 1.15rem; overflow-wrap: anywhere }
.by { display: flex; gap: .85rem; align-items: center }
.by > div { min-width: 0 }
.by p { margin: 0; line-height: 1.4; overflow-wrap: anywhere }
.by b a, .by b { color: var(--ink); text-decoration: none }
a.soft { text-decoration: none }
a.soft:hover { text-decoration: underline }
.small { font-size: .875rem }
.face { flex: none; display: grid; place-items: center; width: 3rem; height: 3rem; border-radius: 50%; object-fit: cover;
  background: var(--line); color: var(--soft); font-weight: 600; text-transform: uppercase }
.face.large { width: 5.5rem; height: 5.5rem; font-size: 2rem }
.text { margin-top: 1rem; overflow-wrap: anywhere }
.text > :first-child { margin-top: 0 }
.text h2, .text h3, .text h4, .text h5, .text h6 { margin: 1.25rem 0 .25rem; line-height: 1.3 }
.text h2 { font-size: 1.3rem }
.text h3 { font-size: 1.15rem }
.text h4, .text h5, .text h6 { font-size: 1rem }
.text ul, .text ol { margin: .75rem 0 0; padding-left: 1.4rem }
.text pre { margin: .75rem 0 0; padding: .75rem .9rem; overflow-x: auto; background: var(--paper); border: 1px solid var(--line);
  border-radius: .5rem }
.text pre code { padding: 0; border: 0; overflow-wrap: normal }
.text hr { margin: 1.25rem 0; border: 0; border-top: 1px solid var(--line) }
.text blockquote { margin: .75rem 0 0; padding-left: 1rem; border-left: 3px solid var(--line); color: var(--soft) }
.tag { color: var(--link) }
.photos { display: grid; gap: .5rem; margin-top: 1rem }
.photos img { display: block; max-width: 100%; height: auto; border-radius: .5rem }
.inner > :first-child { margin-top: 0 }
.inner { margin-top: 1rem; padding: 1rem 1.1rem; border: 1px solid var(--line); border-radius: .6rem }
.poll { margin: 1rem 0 0; padding: 0; list-style: none; display: grid; gap: .6rem }
.poll div { display: flex; justify-content: space-between; gap: 1rem }
.poll meter { width: 100% }
details summary { cursor: pointer; color: var(--soft) }
.foot { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin-top: 1rem; padding-top: .75rem; border-top: 1px solid var(--line) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 1rem 0 0 }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
.field { display: grid; gap: .3rem; margin-top: 1.1rem }
.field label { font-weight: 600 }
input { width: 100%; padding: .6rem .75rem; border: 1px solid var(--edge); border-radius: .5rem; background: var(--paper);
  color: inherit; font: inherit }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.5rem }
button { padding: .6rem 1.3rem; border: 1px solid var(--button); border-radius: .5rem; background: var(--button); color: #fff;
  font: inherit; font-weight: 600; cursor: pointer }
button:hover { filter: brightness(1.1) }
button.quiet { border-color: var(--edge); background: none; color: var(--ink) }
:is(a, button, input, summary):focus-visible { outline: 3px solid var(--link); outline-offset: 2px }
.alert { padding: .7rem .9rem; border: 1px solid var(--line); border-left: 4px solid var(--wrong); border-radius: .5rem;
  background: var(--paper) }
main > p:first-child { margin-top: 0 }
.card details { margin-top: .75rem }
.scopes { margin: .75rem 0 0; padding-left: 1.25rem }
.scopes li { margin-top: .25rem }
`
