import { readFileSync, writeFileSync } from 'node:fs'
import { limitsPage } from './limits-page.js'

const root = new URL('../', import.meta.url)

writeFileSync(
  new URL('docs/limits.md', root),
  limitsPage((path) => readFileSync(new URL(path, root), 'utf8')),
)
