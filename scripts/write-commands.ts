import { writeFileSync } from 'node:fs'
import { commandsPage } from './commands-page.js'

writeFileSync(new URL('../docs/commands.md', import.meta.url), await commandsPage())
