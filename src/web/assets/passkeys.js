// Forms with `data-passkey` are sent once the browser has made a passkey, or used one, with the options in `data-options`.

function toBytes(text) {
  const base64 = text.replaceAll('-', '+').replaceAll('_', '/')
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}

function toText(buffer) {
  const binary = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join('')
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

const withBytes = (credentials) => credentials.map((each) => ({ ...each, id: toBytes(each.id) }))

async function makePasskey(options) {
  const publicKey = {
    ...options,
    challenge: toBytes(options.challenge),
    user: { ...options.user, id: toBytes(options.user.id) },
    excludeCredentials: withBytes(options.excludeCredentials),
  }
  const made = await navigator.credentials.create({ publicKey })
  return {
    clientDataJSON: toText(made.response.clientDataJSON),
    attestationObject: toText(made.response.attestationObject),
    transports: made.response.getTransports?.() ?? [],
    made,
  }
}

async function usePasskey(options) {
  const publicKey = {
    ...options,
    challenge: toBytes(options.challenge),
    allowCredentials: withBytes(options.allowCredentials),
  }
  const made = await navigator.credentials.get({ publicKey })
  const { clientDataJSON, authenticatorData, signature, userHandle } = made.response
  return {
    clientDataJSON: toText(clientDataJSON),
    authenticatorData: toText(authenticatorData),
    signature: toText(signature),
    userHandle: userHandle === null ? undefined : toText(userHandle),
    made,
  }
}

async function answer(form) {
  const options = JSON.parse(form.dataset.options)
  const { made, ...response } = await (form.dataset.passkey === 'make' ? makePasskey : usePasskey)(options)
  return JSON.stringify({
    id: made.id,
    rawId: toText(made.rawId),
    type: made.type,
    response,
    clientExtensionResults: {},
  })
}

for (const form of document.querySelectorAll('form[data-passkey]')) {
  const message = form.querySelector('[data-passkey-failed]')
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    message.hidden = true
    answer(form)
      .then((text) => {
        form.querySelector('[data-passkey-answer]').value = text
        form.submit()
      })
      .catch(() => {
        message.hidden = false
      })
  })
}
