import { writeFileSync } from 'node:fs'
import { streamPage } from './stream-page.js'

writeFileSync(new URL('../docs/main-stream.md', import.meta.url), streamPage())
