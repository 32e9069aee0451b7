import { readFileSync, writeFileSync } from 'node:fs'
import { licencesPage } from './licences-page.js'

const lock = readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')

writeFileSync(new URL('../docs/licences.md', import.meta.url), licencesPage(JSON.parse(lock)))
