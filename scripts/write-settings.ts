import { writeFileSync } from 'node:fs'
import { exampleFile, settingsPage } from './settings-pages.js'

const root = new URL('../', import.meta.url)

writeFileSync(new URL('docs/settings.md', root), settingsPage())
writeFileSync(new URL('.env.example', root), exampleFile())
