import { writeFile } from 'node:fs/promises'
import { describeApi } from '../src/web/openapi/document.js'

const file = new URL('../docs/openapi.json', import.meta.url)
await writeFile(file, `${JSON.stringify(await describeApi(), null, 2)}\n`)
