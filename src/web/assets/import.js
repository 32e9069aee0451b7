// The form with `data-import-upload` sends its files in parts, so that a broken upload goes on where it stopped.

const PART_BYTES = 8 * 1024 * 1024
const ATTEMPTS = 5
const WAIT_MS = 3_000

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function sendPart(url, part) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/octet-stream' },
        body: part,
      })
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
      await wait(WAIT_MS * attempt)
    }
  }
}

/** Bytes of each file that the pod has. */
const sent = new Map()

/** Sends what the pod does not have of a file. False: the pod refuses it. */
async function sendFile(parts, name, file, report) {
  const key = [name, file.name, file.size, file.lastModified].join(' ')
  for (let offset = sent.get(key) ?? 0; offset < file.size; ) {
    const url = `${parts}&file=${name}&offset=${offset}`
    const answer = await sendPart(url, file.slice(offset, offset + PART_BYTES))
    if (!answer.ok && answer.status !== 409) return false
    const arrived = (await answer.json()).offset
    // The request before it is still being stored.
    if (!answer.ok && arrived === offset) await wait(WAIT_MS)
    offset = arrived
    sent.set(key, offset)
    report(offset)
  }
  return true
}

async function upload(form) {
  const bar = form.querySelector('[data-import-progress]')
  const files = ['archive', 'photos'].flatMap((name) => {
    const [file] = form.elements[name].files
    return file === undefined ? [] : [{ name, file }]
  })
  const total = files.reduce((sum, { file }) => sum + file.size, 0)
  let before = 0
  bar.hidden = false
  for (const { name, file } of files) {
    const report = (offset) => {
      bar.value = (100 * (before + offset)) / total
    }
    if (!(await sendFile(form.dataset.parts, name, file, report))) return false
    before += file.size
  }
  return true
}

/** Leaves the page with a form, as a browser without the script does. */
function submitCheck({ dataset: { check, token } }) {
  const form = document.createElement('form')
  form.method = 'post'
  form.action = check
  form.append(Object.assign(document.createElement('input'), { type: 'hidden', name: 'form', value: token }))
  document.body.append(form)
  form.submit()
}

for (const form of document.querySelectorAll('[data-import-upload]')) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const button = form.querySelector('button')
    button.disabled = true
    const isSent = await upload(form).catch(() => undefined)
    if (isSent === true) return submitCheck(form)
    button.disabled = false
    // A refusal is explained by the page; a broken connection by the text of the form.
    if (isSent === false) form.submit()
    else form.querySelector('[data-import-failed]').hidden = false
  })
}
